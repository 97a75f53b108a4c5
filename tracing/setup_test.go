package tracing

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

func TestExporterFromEnv(t *testing.T) {
	t.Parallel()
	const endpoint = "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4318"
	for name, tc := range map[string]struct {
		env  string
		want exporterKind
		err  string
	}{
		"nothing":                       {"", exportNone, ""},
		"endpoint":                      {endpoint, exportHTTP, ""},
		"traces endpoint":               {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=http://127.0.0.1:4318", exportHTTP, ""},
		"named without endpoint":        {"OTEL_TRACES_EXPORTER=otlp", exportHTTP, ""},
		"grpc":                          {endpoint + " OTEL_EXPORTER_OTLP_PROTOCOL=grpc", exportGRPC, ""},
		"traces protocol wins":          {endpoint + " OTEL_EXPORTER_OTLP_PROTOCOL=grpc OTEL_EXPORTER_OTLP_TRACES_PROTOCOL=http/protobuf", exportHTTP, ""},
		"console":                       {"OTEL_TRACES_EXPORTER=Console", exportConsole, ""},
		"none beats endpoint":           {endpoint + " OTEL_TRACES_EXPORTER=none", exportNone, ""},
		"disabled":                      {endpoint + " OTEL_SDK_DISABLED=TRUE", exportNone, ""},
		"disabled beats unknown":        {"OTEL_TRACES_EXPORTER=zipkin OTEL_SDK_DISABLED=true", exportNone, ""},
		"unknown exporter":              {"OTEL_TRACES_EXPORTER=zipkin", exportNone, `OTEL_TRACES_EXPORTER "zipkin": want otlp, console or none`},
		"unknown protocol":              {endpoint + " OTEL_EXPORTER_OTLP_PROTOCOL=http/json", exportNone, `OTEL_EXPORTER_OTLP_PROTOCOL "http/json": want grpc`},
		"unknown protocol, no endpoint": {"OTEL_EXPORTER_OTLP_PROTOCOL=http/json", exportNone, ""},
	} {
		env := map[string]string{}
		for pair := range strings.FieldsSeq(tc.env) {
			k, v, _ := strings.Cut(pair, "=")
			env[k] = v
		}
		got, err := exporterFromEnv(func(k string) string { return env[k] })
		if got != tc.want || (err == nil) != (tc.err == "") || err != nil && !strings.Contains(err.Error(), tc.err) {
			t.Errorf("%s: got %q, %v; want %q, %q", name, got, err, tc.want, tc.err)
		}
	}
}

func TestSetupWithoutVariablesRecordsNothing(t *testing.T) {
	for _, k := range []string{envDisabled, envExporter, envEndpoint, envTracesEndpoint} {
		t.Setenv(k, "")
	}
	before := Tracer()
	shutdown, err := Setup(context.Background(), Config{})
	if err != nil || shutdown(context.Background()) != nil || shutdown(context.Background()) != nil {
		t.Fatalf("setup or shutdown: %v", err)
	}
	if Tracer() != before {
		t.Error("the provider changed")
	}
	t.Setenv(envExporter, "zipkin")
	if _, err := Setup(context.Background(), Config{}); err == nil {
		t.Error("an unknown exporter was taken")
	}
}

// run starts this test binary as a traced process, ends it with SIGTERM, and returns how long it took from there.
func run(t *testing.T, flush string, env ...string) (time.Duration, int, string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), envChild+"="+flush, "OTEL_TRACES_EXPORTER=otlp")
	cmd.Env = append(cmd.Env, env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, err := bufio.NewReader(stdout).ReadString('\n'); err != nil || line != "ready\n" {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		t.Fatalf("child said %q (%v): %s", line, err, stderr.String())
	}
	start := time.Now()
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	return time.Since(start), cmd.ProcessState.ExitCode(), stderr.String()
}

func TestE04SpansArriveAtSIGTERM(t *testing.T) {
	t.Parallel()
	r := newReceiver(t, 4<<20)
	_, code, stderr := run(t, "5s", envEndpoint+"="+r.URL, "OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=test")
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	root, tool := r.spans["invoke_agent reviewer"], r.spans["execute_tool bash"]
	if root == nil || tool == nil || !bytes.Equal(tool.ParentSpanId, root.SpanId) {
		t.Fatalf("collector has %v", r.spans)
	}
	got := strings.Join(r.service, " ")
	for _, want := range []string{"service.name=child", "service.instance.id=i-1", "deployment.environment.name=test"} {
		if !strings.Contains(got, want) {
			t.Errorf("resource lacks %s: %s", want, got)
		}
	}
}

func TestE04CollectorDownDoesNotDelayTheExit(t *testing.T) {
	t.Parallel()
	const slack = 5 * time.Second // of a loaded machine; without a bound the exporter tries for 10 s and more
	for name, env := range map[string][]string{
		"http refused": {envEndpoint + "=" + down(t)},
		"http silent":  {envEndpoint + "=" + silent(t)},
		"grpc refused": {envEndpoint + "=" + down(t), envProtocol + "=grpc"},
		"grpc silent":  {envEndpoint + "=" + silent(t), envProtocol + "=grpc"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			took, code, stderr := run(t, "300ms", env...)
			if code > 1 || stderr == "" {
				t.Errorf("exit %d without a word on what was lost: %q", code, stderr)
			}
			if took > 300*time.Millisecond+slack {
				t.Errorf("the exit took %s", took)
			}
		})
	}
}

// hanging is an exporter whose collector never answers.
type hanging struct{ ended chan struct{} }

func (h hanging) ExportSpans(ctx context.Context, _ []sdktrace.ReadOnlySpan) error {
	<-ctx.Done()
	close(h.ended)
	return ctx.Err()
}

func (hanging) Shutdown(context.Context) error { return nil }

func TestE04FlushHasItsOwnBound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(context.Background())
		h := hanging{ended: make(chan struct{})}
		p := newPipeline(ctx, Config{}.withDefaults(), h)
		_, span := p.provider.Tracer("t").Start(ctx, "s")
		span.End()
		cancel()
		start := time.Now()
		err := p.shutdown(ctx)
		if took := time.Since(start); took != defaultFlush || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("shutdown took %s and said %v, want %s and a deadline", took, err, defaultFlush)
		}
		<-h.ended // the export under way was ended too
		if again := p.shutdown(ctx); !errors.Is(again, err) {
			t.Errorf("second shutdown said %v, want %v", again, err)
		}
	})
}

func TestErrorLogIsQuiet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var b strings.Builder
		l := &errorLog{logger: slog.New(slog.NewTextHandler(&b, nil)), every: time.Minute}
		for range 10 {
			l.Handle(errors.New("refused"))
		}
		l.Handle(nil)
		time.Sleep(time.Minute)
		l.Handle(errors.New("refused"))
		if got := strings.Count(b.String(), "\n"); got != 2 || !strings.Contains(b.String(), "suppressed=9") {
			t.Errorf("log:\n%s", b.String())
		}
	})
}

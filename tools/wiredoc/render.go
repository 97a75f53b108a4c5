package main

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/schema"
)

//go:embed wire.md.tmpl
var prose string

// facts of the code that the prose names.
type numbers struct {
	Prefix                                                                            string
	AckWait, InProgress, DefaultTimeout, TTLMargin, Heartbeat, HeartbeatTTL, ToolsTTL time.Duration
	MaxInlineKiB, MaxPayloadMiB, RetentionDays                                        int
	Version                                                                           int
}

func render(root string) ([]byte, error) {
	src, err := readSource(root)
	if err != nil {
		return nil, err
	}
	t, err := template.New("wire.md").Funcs(template.FuncMap{
		"subjects": subjectTable, "headers": headerTable, "rules": ruleTable, "streams": streamBlocks,
		"consumer": consumerBlock, "wakers": wakerBlocks, "bucket": bucketBlock, "blobs": blobsBlock, "auditor": auditorBlock, "auditstream": auditStreamBlock, "s": seconds,
		"payload": src.payloadTable, "values": src.valueTable, "const": src.constantValue, "example": example,
	}).Parse(prose)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, numbers{
		Prefix: bus.DefaultPrefix, AckWait: bus.AckWait, InProgress: bus.InProgress, DefaultTimeout: bus.DefaultTimeout,
		TTLMargin: bus.TTLMargin, Heartbeat: bus.Heartbeat, HeartbeatTTL: bus.HeartbeatTTL, ToolsTTL: bus.ToolsTTL,
		MaxInlineKiB: schema.MaxInline >> 10, MaxPayloadMiB: schema.MaxPayload >> 20, RetentionDays: int(bus.Retention.Hours() / 24), Version: schema.Version,
	})
	return out.Bytes(), err
}

// table writes a Markdown table without the final newline.
func table(head []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) {
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	line(head)
	b.WriteString(strings.Repeat("|---", len(head)) + "|\n")
	for _, r := range rows {
		for i := range r {
			r[i] = strings.ReplaceAll(r[i], "|", `\|`)
		}
		line(r)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + s + "`"
}

func subjectTable() string {
	var rows [][]string
	for _, s := range bus.Subjects(bus.DefaultPrefix) {
		home := code(s.Home)
		if home == "" {
			home = "core NATS"
		}
		rows = append(rows, []string{code(s.Pattern), home, link(s.Payload), s.Meaning})
	}
	return table([]string{"subject", "stored in", "payload", "meaning"}, rows)
}

// link points to the section of a payload's type, given as package and name.
func link(payload string) string {
	_, name, ok := strings.Cut(payload, ".")
	if !ok {
		return "by kind"
	}
	return "[" + name + "](#" + strings.ToLower(name) + ")"
}

func headerTable() string {
	var rows [][]string
	for _, h := range bus.Headers() {
		rows = append(rows, []string{code(h.Name), h.On, h.Meaning})
	}
	return table([]string{"header", "on", "meaning"}, rows)
}

func ruleTable() string {
	var rows [][]string
	for _, r := range schema.Rules() {
		payload := "later"
		if r.Payload != "" {
			payload = link("schema." + r.Payload)
		}
		rows = append(rows, []string{code(r.Subject), r.Writer, r.Guard, payload, r.Holds})
	}
	return table([]string{"fact", "written by", "only while this is absent", "payload", "what it says"}, rows)
}

// settings returns a configuration as JSON without what is zero.
func settings(config any) (string, error) {
	data, err := json.Marshal(config)
	if err != nil {
		return "", err
	}
	var all map[string]any
	if err := json.Unmarshal(data, &all); err != nil {
		return "", err
	}
	maps.DeleteFunc(all, func(key string, v any) bool { return key == "description" || isDefault(v) })
	text, err := plainJSON(all, "  ")
	return "```json\n" + text + "\n```", err
}

// isDefault tells whether a setting says nothing.
func isDefault(v any) bool {
	m, isMap := v.(map[string]any)
	return v == nil || v == "none" || isMap && len(m) == 0 || reflect.ValueOf(v).IsZero()
}

// plainJSON is JSON for people: '>' stays '>'.
func plainJSON(v any, indent string) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", indent)
	err := enc.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}

func streamBlocks() (string, error) {
	var blocks []string
	for _, c := range bus.Streams(bus.DefaultPrefix, 1) {
		block, err := settings(c)
		if err != nil {
			return "", err
		}
		blocks = append(blocks, block)
	}
	return strings.Join(blocks, "\n\n"), nil
}

func consumerBlock(queue string) (string, error) {
	return settings(bus.ConsumerConfig(bus.DefaultPrefix, queue))
}

// wakerBlocks are the consumers that wake runs, by the name of their stream.
func wakerBlocks() (string, error) {
	consumers := bus.WakeConsumers(bus.DefaultPrefix)
	var blocks []string
	for _, stream := range slices.Sorted(maps.Keys(consumers)) {
		block, err := settings(consumers[stream])
		if err != nil {
			return "", err
		}
		blocks = append(blocks, "On `"+stream+"`:\n\n"+block)
	}
	return strings.Join(blocks, "\n\n"), nil
}

func bucketBlock() (string, error) { return settings(bus.CatalogStream(bus.DefaultPrefix, 1)) }

func blobsBlock(queue string) (string, error) {
	return settings(bus.BlobStream(bus.DefaultPrefix, queue, 1))
}

func auditorBlock(name string) (string, error) {
	return settings(bus.AuditConsumer(bus.DefaultPrefix, name))
}

func auditStreamBlock(stream string) (string, error) {
	return settings(bus.AuditStreamConfig(bus.DefaultPrefix, stream, 1))
}

// seconds writes a duration for people.
func seconds(d time.Duration) string { return fmt.Sprintf("%d s", int(d.Seconds())) }

func (s *source) payloadTable(name string) (string, error) {
	t, err := typeNamed(name)
	if err != nil {
		return "", err
	}
	fields, err := s.fieldsOf(t)
	if err != nil {
		return "", err
	}
	var rows [][]string
	for _, f := range fields {
		required := ""
		if f.Required {
			required = "yes"
		}
		rows = append(rows, []string{code(f.Key), f.Type, required, f.Meaning})
	}
	return "#### " + t.Name() + "\n\n" + table([]string{"key", "type", "required", "meaning"}, rows), nil
}

func (s *source) valueTable(group string) (string, error) {
	list := s.consts[group]
	if len(list) == 0 {
		return "", fmt.Errorf("no constants of %s", group)
	}
	var rows [][]string
	for _, c := range list {
		rows = append(rows, []string{code(c.Value), c.Meaning})
	}
	return table([]string{"value", "meaning"}, rows), nil
}

func (s *source) constantValue(name string) (string, error) {
	v, ok := s.values[name]
	if !ok {
		return "", fmt.Errorf("no constant %s with a literal value", name)
	}
	return v, nil
}

package session

import (
	"slices"
	"strings"
)

// inherited are the variables of this process's environment that its workers get. Everything else stays here: a
// worker runs commands that a model wrote, and the keys of providers are nothing to them.
var inherited = []string{
	"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TERM", "TZ", "TMPDIR", "TEMP", "TMP",
	"SYSTEMROOT", "COMSPEC", "PATHEXT", "USERPROFILE", "GOCOVERDIR",
}

// workerEnv picks from environ what a worker gets. OTEL_* goes along, so that a run is one trace over all processes,
// but for headers, which hold keys; a worker that must export with a key is started by the user.
func workerEnv(environ []string, opts Options) []string {
	var env []string
	for _, entry := range environ {
		name, _, _ := strings.Cut(entry, "=")
		upper := strings.ToUpper(name)
		otel := strings.HasPrefix(upper, "OTEL_") && !strings.HasSuffix(upper, "_HEADERS")
		if otel || strings.HasPrefix(upper, "LC_") || slices.Contains(inherited, upper) {
			env = append(env, entry)
		}
	}
	if opts.Prefix != "" {
		env = append(env, "JETCREW_PREFIX="+opts.Prefix)
	}
	if opts.URL != "" && opts.Creds != "" {
		env = append(env, "NATS_CREDS="+opts.Creds)
	}
	return env
}

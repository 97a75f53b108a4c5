package agentfile

import (
	"bytes"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/jetcrew/jetcrew/schema"
)

var (
	validTool  = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
	validQueue = regexp.MustCompile(`^[a-z0-9_-]{1,64}$`)
)

// reserved are the beginnings of names that Jetcrew gives to tools itself.
var reserved = []string{"team_", "subagent_"}

// tools reads the list of tools into spec: patterns, and what is set of them.
func (r *reader) tools(f field, spec *schema.AgentSpec, g *schema.Governance) {
	for i, n := range r.list(f, "names") {
		ref, set := r.tool(n)
		if ref == "" {
			continue
		}
		r.checkTool(n, ref, spec)
		spec.Tools = append(spec.Tools, ref)
		r.toolsAt = append(r.toolsAt, n)
		if set != nil {
			set.Ref = ref
			g.Tools = append(g.Tools, *set)
			r.settings = append(r.settings, i)
		}
	}
}

// tool reads one entry; set is nil when it sets nothing.
func (r *reader) tool(n ast.Node) (ref string, set *schema.ToolSetting) {
	switch v := n.(type) {
	case *ast.StringNode:
		if ref = strings.TrimSpace(v.Value); ref == "" {
			r.fail(n, CodeToolRef, "tools: a name is empty")
		}
		return ref, nil
	case ast.MapNode:
		return r.toolSetting(n)
	}
	r.fail(n, CodeTypeText, "tools: want a name, got %s%s", kind(n), quoteHint(n))
	return "", nil
}

func (r *reader) toolSetting(n ast.Node) (ref string, set *schema.ToolSetting) {
	fields := r.object(n, shapeTool())
	set = &schema.ToolSetting{
		Approval:  r.approval(fields[fieldApproval]),
		Once:      r.flag(fields[fieldOnce]),
		TimeoutMS: r.bound(fields[fieldTimeout], "timeoutMillis"),
		Bind:      r.bind(fields[fieldBind]),
	}
	ref = r.toolRef(n, fields)
	if *set == (schema.ToolSetting{}) {
		return ref, nil
	}
	return ref, set
}

// toolRef is the pattern of an entry with fields.
func (r *reader) toolRef(n ast.Node, fields map[string]field) string {
	ref := fields[fieldRef]
	name := strings.TrimSpace(r.text(ref))
	if _, isText := ref.value.(*ast.StringNode); name == "" && (ref.null() || isText) {
		r.fail(n, CodeToolRef, "tool: ref is missing; it is a name, a pattern or queue/name")
	}
	q := fields[fieldQueue]
	queue := r.text(q)
	switch _, isText := q.value.(*ast.StringNode); {
	case name == "" || !isText:
		return name
	case !validQueue.MatchString(queue):
		r.fail(q.value, CodeToolQueue, "queue %q: want 1 to 64 of a-z, 0-9, '_' and '-'", short(queue))
		return name
	case strings.HasPrefix(name, queue+"/"):
		r.fail(q.value, CodeToolQueue, "queue: %q names the queue too: keep one", short(name))
	}
	return queue + "/" + name
}

// checkTool refuses patterns that cannot be read, stand there twice, are not the file's to give, or mean the agent.
func (r *reader) checkTool(n ast.Node, ref string, spec *schema.AgentSpec) {
	_, err := path.Match(ref, "")
	switch {
	case err != nil:
		r.fail(n, CodeToolPattern, "tools: %q is not a valid pattern", short(ref))
	case contains(spec.Tools, ref):
		r.fail(n, CodeToolDuplicate, "tools: %q stands in the list twice", short(ref))
	case ref == schema.QueueAgents+"/"+spec.ID:
		r.fail(n, CodeSubagentSelf, "tools: %q is this agent itself", short(ref))
	case isReserved(ref):
		r.fail(n, CodeToolReserved, "tools: %q: names that begin with %s are reserved", short(ref), strings.Join(reserved, " or "))
	}
}

// isReserved tells whether a pattern means names that are Jetcrew's own. Ids of agents are no names of tools.
func isReserved(ref string) bool {
	queue, name, ok := strings.Cut(ref, "/")
	if !ok {
		name = ref
	}
	return queue != schema.QueueAgents && slices.ContainsFunc(reserved, func(p string) bool { return strings.HasPrefix(name, p) })
}

// approval reads when a person is asked. One that nobody knows counts as the strictest, which is safe.
func (r *reader) approval(f field) string {
	s := r.text(f)
	if _, ok := f.value.(*ast.StringNode); ok && !contains(approvals, s) {
		r.warn(f.value, CodeApprovalUnknown, "unknown approval %q counts as %s%s", short(s), schema.ApproveAlways, suggest(s, approvals))
		return schema.ApproveAlways
	}
	return s
}

// bound values are put in where a text says ${…}.
var bindable = []string{"principal.id", "principal.tenant", "run", "agent"}

// bind reads an object of values that the tool gets beside the model's arguments.
func (r *reader) bind(f field) schema.JSONText {
	if f.null() {
		return ""
	}
	fields := r.fields(f.value, fieldBind)
	if len(fields) == 0 {
		return ""
	}
	for _, v := range fields {
		r.checkBound(v.value, 0)
	}
	var b bytes.Buffer
	r.jsonFields(&b, fieldBind, fields, 0)
	return schema.JSONText(b.String())
}

// checkBound refuses texts that name what a call does not have.
func (r *reader) checkBound(n ast.Node, depth int) {
	if depth > maxNesting {
		return // said by what writes it
	}
	switch n := n.(type) {
	case *ast.StringNode:
		for _, m := range placeholder.FindAllStringSubmatch(n.Value, -1) {
			if m[0] != "$${" && (m[2] == "" || !contains(bindable, m[1])) {
				r.fail(n, CodeBindUnknown, "bind: %q: want ${%s}", short(m[0]), strings.Join(bindable, "}, ${"))
			}
		}
	case *ast.SequenceNode:
		for _, v := range n.Values {
			r.checkBound(r.resolve(v), depth+1)
		}
	case ast.MapNode:
		for it := n.MapRange(); it.Next(); {
			r.checkBound(r.resolve(it.Value()), depth+1)
		}
	}
}

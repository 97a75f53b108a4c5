package rules

import (
	"slices"

	"github.com/jetcrew/jetcrew/schema"
)

// The ready-made lists of rules.
const (
	PresetSafe          = "safe"           // write_file, apply_patch, edit and bash ask
	PresetReadOnly      = "read-only"      // whatever does not only read is denied
	PresetNoNetwork     = "no-network"     // tools with the effect network are denied
	PresetNoDestructive = "no-destructive" // tools whose effect cannot be undone, or is unknown, are denied
)

// Presets returns the names of the ready-made lists.
func Presets() []string {
	return []string{PresetSafe, PresetReadOnly, PresetNoNetwork, PresetNoDestructive}
}

// Preset returns the rules of a ready-made list; nil when there is no such list.
func Preset(name string) []schema.PolicyRule {
	deny := func(text string, effects ...string) []schema.PolicyRule {
		return []schema.PolicyRule{{Name: "preset:" + name, Effects: effects, Action: schema.ActionDeny, Text: text}}
	}
	switch name {
	case PresetSafe:
		return []schema.PolicyRule{{
			Name: "preset:safe", Tools: []string{"write_file", "apply_patch", "edit", "bash"}, Action: schema.ActionAsk,
			Text: "this tool changes files or runs commands",
		}}
	case PresetReadOnly:
		return deny("this agent may only read", schema.EffectWrite, schema.EffectNetwork, schema.EffectDestructive)
	case PresetNoNetwork:
		return deny("this agent may not use tools that reach other systems", schema.EffectNetwork)
	case PresetNoDestructive:
		return deny("this agent may not do what cannot be undone", schema.EffectDestructive)
	}
	return nil
}

func (c *compiler) presets(path string, names []string) []rule {
	var all []rule
	for i, name := range names {
		at := place(path, i)
		rules := Preset(name)
		switch {
		case rules == nil && name == "":
			c.problems.add(at, CodeMissing, "the name of the preset is empty")
		case rules == nil:
			c.oneOf(at, "preset", name, Presets()...)
		case slices.Contains(names[:i], name):
			c.problems.add(at, CodeDuplicate, "the preset %s is already there", name)
			continue
		}
		for i := range rules {
			all = append(all, c.rule(at, &rules[i]))
		}
	}
	return all
}

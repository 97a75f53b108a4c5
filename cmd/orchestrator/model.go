package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/model/anthropic"
	"github.com/jetcrew/jetcrew/loop/model/openai"
	"github.com/jetcrew/jetcrew/loop/model/replay"
	"github.com/jetcrew/jetcrew/schema"
)

// newModel returns the client of an agent's model. dir is where the agent's file lies: a transcript's path is relative
// to it.
func newModel(spec schema.AgentSpec, dir string) (loop.Model, error) {
	switch m := spec.Model; m.Provider {
	case openai.Provider:
		return openai.New(openai.Config{Model: m.Name})
	case anthropic.Provider:
		return anthropic.New(anthropic.Config{Model: m.Name})
	case replay.Provider:
		return recordedModel(m.Name, spec.ID, dir)
	}
	return nil, fmt.Errorf("agent %s: unknown provider %q", spec.ID, spec.Model.Provider)
}

// recordedModel reads name, FILE or FILE#ID. Without an ID a file of several transcripts answers with the one whose id
// is the agent's.
func recordedModel(name, agent, dir string) (loop.Model, error) {
	path, id, _ := strings.Cut(name, "#")
	if !filepath.IsAbs(path) {
		path = filepath.Join(dir, path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("model replay: %w", err)
	}
	defer f.Close()
	list, err := replay.Load(f)
	if err != nil {
		return nil, fmt.Errorf("model replay: %s: %w", path, err)
	}
	if id == "" && len(list) == 1 {
		return replay.New(list...), nil
	}
	return oneOf(list, path, id, agent)
}

func oneOf(list []replay.Transcript, path, id, agent string) (loop.Model, error) {
	if id == "" {
		id = agent
	}
	i := slices.IndexFunc(list, func(t replay.Transcript) bool { return t.ID == id })
	switch {
	case len(list) == 0:
		return nil, fmt.Errorf("model replay: %s: %w", path, errors.New("it holds no transcript"))
	case i < 0:
		return nil, fmt.Errorf("model replay: %s: no transcript has the id %q; name one as replay/%s#ID", path, id, filepath.Base(path))
	}
	return replay.New(list[i]), nil
}

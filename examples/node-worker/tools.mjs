// The tools of this worker. A tool is a definition, as it stands in the catalog, and a function
// run(args, { signal, progress }) that returns the text for the model.
import { setTimeout as pause } from "node:timers/promises";

/** An error of one of the contract's types. */
export class ToolError extends Error {
  constructor(type, message) {
    super(message);
    this.type = type;
  }
}

const invalid = (message) => new ToolError("InvalidArguments", message);

const textStats = {
  name: "text_stats",
  description: "Counts characters, words and lines of a text.",
  parameters: {
    type: "object",
    properties: { text: { type: "string", description: "the text to count" } },
    required: ["text"],
    additionalProperties: false,
  },
  idempotent: true,
  effect: "read",
  run({ text }) {
    if (typeof text !== "string") throw invalid('missing property "text" (string)');
    const words = text.split(/\s+/u).filter(Boolean).length;
    const lines = text === "" ? 0 : text.split("\n").length;
    return JSON.stringify({ characters: [...text].length, words, lines });
  },
};

const counters = new Map();

const counter = {
  name: "counter",
  description: "Raises a named counter of this worker step by step and returns its value.",
  parameters: {
    type: "object",
    properties: {
      name: { type: "string" },
      steps: { type: "integer", minimum: 1, default: 1 },
      pause_ms: { type: "integer", minimum: 0, default: 0, description: "milliseconds between two steps" },
    },
    required: ["name"],
    additionalProperties: false,
  },
  idempotent: false, // counting twice is wrong
  effect: "write",
  async run({ name, steps = 1, pause_ms = 0 }, { signal, progress }) {
    if (typeof name !== "string" || name === "") throw invalid('missing property "name" (string)');
    if (!Number.isSafeInteger(steps) || steps < 1) throw invalid('property "steps": want an integer of at least 1');
    if (!Number.isSafeInteger(pause_ms) || pause_ms < 0) throw invalid('property "pause_ms": want an integer of at least 0');
    for (let i = 0; i < steps; i++) {
      signal.throwIfAborted();
      const value = (counters.get(name) ?? 0) + 1;
      counters.set(name, value);
      progress(`${name} is ${value}`);
      if (i + 1 < steps && pause_ms > 0) await pause(pause_ms, undefined, { signal });
    }
    return JSON.stringify({ name, value: counters.get(name) });
  },
};

export const tools = [textStats, counter];

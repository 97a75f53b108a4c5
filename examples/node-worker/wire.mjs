// The wire contract as docs/wire.md states it: payloads, subjects, the server's clock, and facts that are written once.
import { decode, encode } from "@msgpack/msgpack";
import { headers } from "nats";

export const VERSION = 1;
export const MAX_INLINE = 256 * 1024; // bytes of a payload
export const ACK_WAIT = 6_000; // milliseconds, of the queue's consumer
export const IN_PROGRESS = 2_000; // milliseconds between two signs that a call is worked on

const EXPECT_SEQ = "Nats-Expected-Last-Subject-Sequence";
const EXPECT_SUBJECT = "Nats-Expected-Last-Subject-Sequence-Subject";
const WRONG_LAST_SEQUENCE = 10071;
const NO_MESSAGE = 10037;
const REQUEST_TIMEOUT = 5_000;
const WRITE_TIMEOUT = 60_000;

const DECODE_LIMITS = { maxStrLength: 1 << 20, maxBinLength: 1 << 20, maxArrayLength: 1 << 16, maxMapLength: 1 << 16 };
const ID = /^[A-Za-z0-9_-]{1,64}$/;

export const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

/** The msgpack form of a payload. */
export const pack = (payload) => encode({ v: VERSION, ...payload }, { ignoreUndefined: true });

/** Reads a payload in msgpack or JSON from bytes that are a stranger's; throws when it is none. */
export function unpack(bytes) {
  const text = bytes.length > 0 && [0x7b, 0x20, 0x09, 0x0a, 0x0d].includes(bytes[0]);
  const value = text ? JSON.parse(new TextDecoder().decode(bytes)) : decode(bytes, DECODE_LIMITS);
  if (value === null || typeof value !== "object" || Array.isArray(value)) throw new Error("payload is not a map");
  if ((value.v ?? VERSION) > VERSION) throw new Error(`payload of version ${value.v}, this program reads ${VERSION}`);
  return value;
}

/** The payload of a hint or a fact, undefined when it cannot be read. */
export function understood(bytes) {
  try {
    return unpack(bytes);
  } catch {
    return undefined;
  }
}

/** Tells whether text can be a run or instance id, which becomes a subject token. */
export const validId = (text) => typeof text === "string" && ID.test(text);

/** Reads a call; throws when it is none. Arguments stay text until the call is admitted. */
export function unpackCall(bytes) {
  const { ref, ...payload } = unpack(bytes);
  const referred = ref !== null && typeof ref === "object"; // too large for a message: this program reads no object store
  const call = referred ? { turn: 0, index: 0, ...ref } : payload;
  const count = (n) => Number.isSafeInteger(n) && n >= 0;
  if (!validId(call.run)) throw new Error("call without a well-formed run");
  if (!count(call.turn) || !count(call.index)) throw new Error("call without turn or index");
  if (referred) return { ...call, tool: "", referred };
  if (typeof call.tool !== "string" || call.tool === "") throw new Error("call without a tool");
  return call;
}

/** The line that the model reads when a call failed. */
export function toolError(type, message, call) {
  const line = {
    errorType: type, error: message.slice(0, 4096) || type,
    tool: call.tool.slice(0, 256), callId: String(call.label ?? "").slice(0, 1024), // a stranger's: they may not fill the result
  };
  return "TOOL_ERROR: " + JSON.stringify(line);
}

/** Every name of one prefix. */
export function names(prefix) {
  const kind = (k) => `${prefix.toUpperCase()}_${k}`;
  const fact = (run, ...tokens) => [prefix, "run", run, ...tokens].join(".");
  return {
    work: kind("WORK"),
    runs: kind("RUNS"),
    filter: (queue) => `${prefix}.work.${queue}.*`,
    dead: (queue) => `${prefix}.dead.${queue}`,
    result: (c, queue) => fact(c.run, "result", c.turn, c.index, queue),
    begin: (c, queue) => fact(c.run, "begin", c.turn, c.index, queue),
    back: (c, queue, seq, delivery) => fact(c.run, "back", c.turn, c.index, queue, seq, delivery),
    own: (instance) => `${prefix}.own.${instance}`,
    cancel: (run) => `${prefix}.cancel.${run}`,
    progress: (c) => `${prefix}.progress.${c.run}.${c.turn}.${c.index}`,
    catalog: (key) => `$KV.${prefix}_catalog.${key}`,
  };
}

/** An answer of JetStream as an object; throws when there is no answer. */
async function ask(nc, subject, body = "", options = {}) {
  const reply = await nc.request(subject, body, { timeout: REQUEST_TIMEOUT, ...options });
  return JSON.parse(reply.string());
}

/** One request of the JetStream API; throws on a refusal. */
export async function api(nc, subject, body) {
  const answer = await ask(nc, `$JS.API.${subject}`, body ? JSON.stringify(body) : "");
  if (answer.error) throw Object.assign(new Error(`${subject}: ${answer.error.description}`), { code: answer.error.err_code });
  return answer;
}

/** Publishes with an acknowledgement; throws on a refusal. fields become headers. */
export async function publish(nc, subject, bytes, fields = {}) {
  const h = headers();
  for (const [name, value] of Object.entries(fields)) h.set(name, value);
  const answer = await ask(nc, subject, bytes, { headers: h });
  if (answer.error) throw Object.assign(new Error(`${subject}: ${answer.error.description}`), { code: answer.error.err_code });
}

/** The bytes of a fact from the leader, null when it is absent. */
export async function look(nc, runs, subject) {
  try {
    const answer = await api(nc, `STREAM.MSG.GET.${runs}`, { last_by_subj: subject });
    return Buffer.from(answer.message.data ?? "", "base64");
  } catch (err) {
    if (err.code === NO_MESSAGE) return null;
    throw err;
  }
}

/**
 * Writes a fact once: "recorded", "exists" (somebody else's), or "guarded" (the fact named by guard is there). Throws
 * when nothing is known after a minute.
 */
export async function record(nc, runs, subject, payload, guard) {
  const bytes = pack(payload);
  const fields = guard ? { [EXPECT_SEQ]: "0", [EXPECT_SUBJECT]: guard } : { [EXPECT_SEQ]: "0" };
  const end = Date.now() + WRITE_TIMEOUT;
  for (let attempt = 1, pause = 20; ; attempt++, pause = Math.min(pause * 2, 1000)) {
    let trouble;
    try {
      await publish(nc, subject, bytes, fields);
      return "recorded";
    } catch (err) {
      trouble = err;
    }
    const guarded = trouble.code === WRONG_LAST_SEQUENCE && guard !== undefined;
    if (guarded && attempt === 1) return "guarded";
    try {
      const have = await look(nc, runs, subject);
      if (have) return Buffer.compare(have, bytes) === 0 ? "recorded" : "exists";
      if (guarded) return "guarded";
    } catch (err) {
      trouble = err;
    }
    if (Date.now() > end) throw trouble;
    await sleep(pause);
  }
}

/** Follows the clock of the work stream's leader. */
export class Clock {
  offset = 0; // milliseconds to add to Date.now()

  now() {
    return Date.now() + this.offset;
  }

  async sync(nc, stream) {
    let best = Infinity;
    for (let i = 0; i < 5; i++) {
      const start = performance.now();
      const asked = Date.now();
      const { ts } = await api(nc, `STREAM.INFO.${stream}`);
      const trip = performance.now() - start;
      if (trip >= best) continue;
      best = trip;
      this.offset = Date.parse(ts) - (asked + trip / 2);
    }
  }
}

// One delivery of a call, from its bytes to its acknowledgement: steps 4 to 8 of "A worker, step by step" in docs/wire.md.
import * as wire from "./wire.mjs";
import { ToolError } from "./tools.mjs";

const ATTEMPTS = 3; // starts of one call
const LACKS_TOOL = 2_000; // milliseconds before a call that this worker cannot run is offered again
const GRACE = 2_000; // milliseconds for a tool to stop after its signal
const DEFAULT_TIMEOUT = 300_000; // milliseconds
const MAX_TIMER = 2 ** 31 - 1;
const MAX_BURIED = 512 * 1024; // bytes of a payload that a dead letter keeps
const MAYBE = "; it may have taken effect";

/** Takes a delivered message to its end. */
export async function handle(worker, message) {
  let call;
  try {
    call = wire.unpackCall(message.data);
  } catch (err) {
    await bury(worker, message, err.message);
    return;
  }
  await new Delivery(worker, message, call).admit();
}

async function bury(worker, message, reason) {
  const { data, info } = message;
  const letter = {
    queue: worker.queue, reason: reason.slice(0, 1024), seq: info.streamSequence, delivery: info.deliveryCount, worker: worker.instance,
    data: data.subarray(0, MAX_BURIED), size: data.length > MAX_BURIED ? data.length : undefined, at_ms: Math.round(worker.clock.now()),
  };
  await wire.publish(worker.nc, worker.names.dead(worker.queue), wire.pack(letter));
  message.term();
}

class Delivery {
  running = false; // what a question on the own-subject is answered with
  stop = new AbortController();

  constructor(worker, message, call) {
    const { streamSequence, deliveryCount, timestampNanos } = message.info;
    this.worker = worker;
    this.message = message;
    this.call = call;
    this.seq = streamSequence;
    this.delivery = deliveryCount;
    this.attempts = deliveryCount;
    this.stored = Math.floor(timestampNanos / 1e6);
    this.deadline = this.#deadline(); // server clock, Unix milliseconds
    this.tool = worker.tools.get(call.tool);
    this.runOnce = !(call.idempotent === true && this.tool?.idempotent === true);
    this.key = `${call.run}/${call.turn}.${call.index}`;
  }

  #deadline() {
    const header = this.message.headers?.get("Jc-Deadline") ?? "";
    if (/^\d+$/.test(header)) return Number(header);
    return this.stored + (this.call.timeout_ms > 0 ? this.call.timeout_ms : DEFAULT_TIMEOUT);
  }

  get expired() {
    return this.worker.clock.now() >= this.deadline;
  }

  /** The first rule that applies decides. */
  async admit() {
    const { table } = this.worker;
    if (table.has(this.key)) return this.giveBack("it runs here already", wire.ACK_WAIT);
    table.set(this.key, this);
    try {
      await this.#settle();
    } finally {
      table.delete(this.key);
    }
  }

  async #settle() {
    if (this.delivery > 1 && (await this.#look("result"))) return this.message.ack();
    if (this.delivery > ATTEMPTS) this.attempts = this.delivery - (await this.#backs());
    if (this.attempts > ATTEMPTS) return this.#lost();
    if (this.expired) return this.#notStarted("Timeout", "its deadline passed while it waited in the queue");
    if (this.call.referred) return this.#notStarted("TooLarge", `this worker takes arguments of up to ${wire.MAX_INLINE / 1024} KiB`);
    if (!this.tool) return this.giveBack(`this worker lacks the tool ${this.call.tool}`, LACKS_TOOL);
    const stricter = this.call.idempotent === true && this.runOnce;
    if (stricter && this.delivery > 1) return this.giveBack("the tool is run-once here and the call is not", LACKS_TOOL);
    this.running = true;
    if (this.runOnce && !(await this.#begin())) return;
    await this.#run();
  }

  /** Claims a run-once call; false when it is not this delivery's to run. */
  async #begin() {
    const { worker, call } = this;
    const begin = { instance: worker.instance, delivery: this.delivery, seq: this.seq };
    switch (await this.#record("begin", begin, worker.names.result(call, worker.queue))) {
      case "guarded": // it has its result
        this.message.ack();
        return false;
      case "exists":
        this.running = false;
        await this.#begun();
        return false;
    }
    if (!this.expired && worker.connected) return true;
    await this.#finish(this.#failure("Timeout", "its deadline passed, or the bus was lost, right before it would have started; it did not start"));
    return false;
  }

  async #run() {
    const started = this.worker.clock.now();
    const result = await this.#execute();
    result.started_ms = Math.round(started);
    result.queued_ms = Math.max(0, Math.round(started - this.stored));
    const { reason } = this.stop.signal;
    if (!result.ok && !this.runOnce && reason?.shutdown && !this.expired && this.attempts < ATTEMPTS) {
      return this.message.nak(0); // cut short by the end of this worker: another may run it
    }
    await this.#finish(result);
  }

  /** Runs the tool under its limits. Whatever it does is a result. */
  async #execute() {
    const limits = [this.call.timeout_ms, this.tool.timeout_ms].filter((ms) => ms > 0);
    const within = Math.min(this.deadline - this.worker.clock.now(), ...limits, MAX_TIMER);
    const timer = setTimeout(() => this.cancel("Timeout", `no result within ${Math.round(within)} ms`), within);
    const { signal } = this.stop;
    let seq = 0;
    const progress = (text) => this.worker.nc.publish(this.worker.names.progress(this.call),
      wire.pack({ seq: ++seq, text: text.slice(0, 4096), worker: this.worker.instance }));
    try {
      signal.throwIfAborted();
      const output = await Promise.race([this.#call({ signal, progress }), givenUp(signal)]);
      return { ...this.#identity(), ok: true, output };
    } catch (err) {
      const e = signal.aborted ? signal.reason : err;
      const type = e instanceof ToolError ? e.type : "ToolFailed";
      const began = signal.aborted && this.runOnce;
      return this.#failure(type, String(e?.message ?? e) + (began ? MAYBE : ""));
    } finally {
      clearTimeout(timer);
    }
  }

  async #call(context) {
    return String(await this.tool.run(parseArguments(this.call.args), context));
  }

  /** Ends the tool; the result will be of that type. */
  cancel(type, message, shutdown = false) {
    this.stop.abort(Object.assign(new ToolError(type, message), { shutdown }));
  }

  /** Records the result, then acknowledges. One that is there already is the outcome. */
  async #finish(result) {
    if (wire.pack(result).length > wire.MAX_INLINE) {
      const large = this.#failure("TooLarge", `the output is larger than ${wire.MAX_INLINE / 1024} KiB`);
      result = { ...result, ...large };
    }
    await this.#record("result", this.#signed(result));
    this.message.ack();
  }

  /** Settles a call that did not start here; of a run-once call only while nobody began it. */
  async #notStarted(type, message) {
    if (await this.#claim(type, message)) this.message.ack();
  }

  async #lost() {
    const message = `its worker was lost on each of ${this.attempts - 1} attempts`;
    if (await this.#claim("WorkerLost", message)) await bury(this.worker, this.message, message);
  }

  async #claim(type, message) {
    const guard = this.runOnce ? this.worker.names.begin(this.call, this.worker.queue) : undefined;
    const outcome = await this.#record("result", this.#signed(this.#failure(type, message)), guard);
    if (outcome === "guarded") await this.#begun();
    return outcome !== "guarded";
  }

  /** A run-once call that somebody began: ask until it runs, is settled, or its worker was silent for too long. */
  async #begun() {
    const bytes = await this.#look("begin");
    if (!bytes) return; // it comes again
    const begin = wire.understood(bytes);
    if (begin && begin.seq !== this.seq) return this.message.ack(); // another copy began
    for (let silent = Date.now(); ; await wire.sleep(500)) {
      const running = wire.validId(begin?.instance) ? await this.#ask(begin.instance) : false; // else nobody can be asked
      if (running === true) return this.giveBack(`it runs at ${begin.instance}`, wire.ACK_WAIT);
      if (await this.#look("result")) return this.message.ack();
      if (!this.worker.connected || this.worker.brokenAt >= silent) silent = Date.now();
      if (running === false || Date.now() - silent >= 2 * wire.ACK_WAIT) break;
    }
    await this.#finish(this.#failure("OutcomeUnknown",
      "the worker that began the call is gone; it may or may not have taken effect, do not repeat it blindly"));
  }

  /** true or false as the instance answers, undefined when it is silent. */
  async #ask(instance) {
    const { run, turn, index } = this.call;
    try {
      const reply = await this.worker.nc.request(this.worker.names.own(instance), wire.pack({ run, turn, index, seq: this.seq }), { timeout: 1_000 });
      return wire.unpack(reply.data).running === true;
    } catch {
      return undefined;
    }
  }

  /** Gives a delivery back that did not start, in writing: it does not count as an attempt. */
  async giveBack(reason, delay) {
    const { worker, call } = this;
    const subject = worker.names.back(call, worker.queue, this.seq, this.delivery);
    await wire.record(worker.nc, worker.names.runs, subject, { instance: worker.instance, reason });
    if (worker.connected) this.message.nak(delay);
  }

  async #backs() {
    const filter = this.worker.names.back(this.call, this.worker.queue, this.seq, "*");
    const info = await wire.api(this.worker.nc, `STREAM.INFO.${this.worker.names.runs}`, { subjects_filter: filter });
    return Object.keys(info.state.subjects ?? {}).length;
  }

  #look(fact) {
    return wire.look(this.worker.nc, this.worker.names.runs, this.worker.names[fact](this.call, this.worker.queue));
  }

  #record(fact, payload, guard) {
    return wire.record(this.worker.nc, this.worker.names.runs, this.worker.names[fact](this.call, this.worker.queue), payload, guard);
  }

  #identity() {
    const { run, turn, index } = this.call;
    return { run, turn, index };
  }

  #failure(type, message) {
    return { ...this.#identity(), ok: false, output: wire.toolError(type, message, this.call), error: { type, message } };
  }

  #signed(result) {
    return { ...result, worker: this.worker.instance, delivery: this.delivery, ended_ms: Math.round(this.worker.clock.now()) };
  }
}

/** Rejects when a tool did not stop in the grace after its signal. */
function givenUp(signal) {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => setTimeout(() => reject(signal.reason), GRACE).unref(), { once: true });
  });
}

/** The arguments as an object: JSON text, or the value itself in a call written by hand. */
function parseArguments(args) {
  if (args === undefined || args === null || args === "") return {};
  let value = args;
  if (typeof args === "string") {
    try {
      value = JSON.parse(args);
    } catch (err) {
      throw new ToolError("InvalidArguments", `arguments are not JSON: ${err.message}`);
    }
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) throw new ToolError("InvalidArguments", "arguments are not an object");
  return value;
}

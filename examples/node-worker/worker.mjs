// A Jetcrew tool worker in JavaScript, written from docs/wire.md. Settings come from the environment: NATS_URL,
// JETCREW_QUEUE (node), JETCREW_SLOTS (4), JETCREW_PREFIX (jc), JETCREW_DRAIN_MS (20000).
import { createHash, randomUUID } from "node:crypto";
import { connect } from "nats";
import * as wire from "./wire.mjs";
import { handle } from "./delivery.mjs";
import { ensureConsumer, ensureStreams } from "./streams.mjs";
import { tools } from "./tools.mjs";

const PULL = 2_000; // milliseconds that a pull waits; a drain takes as long
const HEARTBEAT = 5_000;
const HEARTBEAT_TTL = "15s";
const TOOLS_TTL = "24h";
const TOOLS_EVERY = 6 * 3600_000;
const CLOCK_EVERY = 30_000;

const log = (message, fields = {}) => console.error(JSON.stringify({ time: new Date().toISOString(), message, ...fields }));
const digest = (bytes) => createHash("sha256").update(bytes).digest("hex");

class Worker {
  instance = randomUUID();
  clock = new wire.Clock();
  table = new Map(); // the calls that are worked on, by run/turn.index
  connected = true;
  brokenAt = 0; // when the connection was last lost, Date.now()
  draining = false;
  timers = [];

  constructor({ url, queue, slots, prefix, drain }) {
    Object.assign(this, { url, queue, slots, prefix, drain, names: wire.names(prefix) });
    this.tools = new Map(tools.map((t) => [t.name, t]));
  }

  async run() {
    this.nc = await connect({ servers: this.url, maxReconnectAttempts: -1, name: `node-worker ${this.instance}` });
    this.#followConnection();
    await ensureStreams(this.nc, this.prefix);
    await ensureConsumer(this.nc, this.names, this.queue);
    await this.clock.sync(this.nc, this.names.work);
    this.#listen();
    this.#every(wire.IN_PROGRESS, () => this.#inProgress());
    this.#every(CLOCK_EVERY, () => this.clock.sync(this.nc, this.names.work));
    await this.#announce();
    log("serving", { queue: this.queue, slots: this.slots, instance: this.instance });
    await Promise.all(Array.from({ length: this.slots }, () => this.#slot()));
    await this.#withdraw();
    this.timers.forEach(clearInterval);
    await this.nc.drain();
    log("drained", { instance: this.instance });
  }

  /** Takes no further call; those that run may finish, and are cancelled when that takes too long. */
  stop() {
    if (this.draining) return;
    this.draining = true;
    setTimeout(() => {
      for (const d of this.table.values()) d.cancel("Cancelled", "the worker is shutting down", true);
    }, this.drain).unref();
  }

  /** One slot: pulls one call, works on it, pulls the next. It never holds a message that it does not work on. */
  async #slot() {
    let consumer;
    while (!this.draining) {
      try {
        consumer ??= await this.nc.jetstream().consumers.get(this.names.work, this.queue);
        const message = await consumer.next({ expires: PULL });
        if (message) await handle(this, message);
      } catch (err) {
        log("the slot goes on; what it held comes again", { error: String(err) });
        consumer = undefined;
        await wire.sleep(500);
      }
    }
  }

  #listen() {
    this.nc.subscribe(this.names.own(this.instance), { callback: (err, m) => !err && this.#answerOwn(m) });
    this.nc.subscribe(this.names.cancel("*"), { callback: (err, m) => !err && this.#hearCancel(m) });
  }

  #answerOwn(m) {
    const q = wire.understood(m.data);
    if (!q || !m.reply) return;
    const d = this.table.get(`${q.run}/${q.turn}.${q.index}`);
    m.respond(wire.pack({ running: d !== undefined && d.running && d.seq === q.seq }));
  }

  #hearCancel(m) {
    const c = wire.understood(m.data);
    if (!c) return;
    const run = m.subject.split(".").at(-1);
    for (const d of this.table.values()) {
      const { call } = d;
      if (call.run === run && (c.turn ?? call.turn) === call.turn && (c.index ?? call.index) === call.index) {
        d.cancel("Cancelled", `cancelled: ${c.reason ?? ""}`);
      }
    }
  }

  #inProgress() {
    const now = this.clock.now();
    for (const d of this.table.values()) {
      if (now < d.deadline) d.message.working();
    }
  }

  async #announce() {
    const set = [...this.tools.values()].map(({ run, parameters, ...definition }) => {
      const text = JSON.stringify(parameters);
      return { ...definition, parameters: text, queue: this.queue, digest: digest(text) };
    });
    const bytes = wire.pack({ tools: set });
    const name = digest(bytes);
    const put = (key, payload, ttl) => wire.publish(this.nc, this.names.catalog(key), payload, { "Nats-TTL": ttl });
    const define = () => put(`tools.${this.queue}.${name}`, bytes, TOOLS_TTL);
    const beat = () => put(`${this.queue}.${this.instance}`, wire.pack({ slots: this.slots, digest: name }), HEARTBEAT_TTL);
    await define();
    await beat();
    this.#every(TOOLS_EVERY, define);
    this.#every(HEARTBEAT, beat);
  }

  async #withdraw() {
    const gone = { "KV-Operation": "PURGE", "Nats-Rollup": "sub", "Nats-TTL": HEARTBEAT_TTL };
    await wire.publish(this.nc, this.names.catalog(`${this.queue}.${this.instance}`), new Uint8Array(), gone)
      .catch((err) => log("announcement not withdrawn, it expires", { error: String(err) }));
  }

  async #followConnection() {
    for await (const { type } of this.nc.status()) {
      if (type === "disconnect") {
        this.connected = false;
        this.brokenAt = Date.now();
      } else if (type === "reconnect") {
        this.connected = true;
        this.clock.sync(this.nc, this.names.work).catch((err) => log("server clock", { error: String(err) }));
      }
    }
  }

  /** Repeats work; what fails is logged and repeated at the next time. */
  #every(ms, work) {
    const tick = () => Promise.resolve().then(work).catch((err) => log("periodic work", { error: String(err) }));
    this.timers.push(setInterval(tick, ms));
  }
}

const env = process.env;
const worker = new Worker({
  url: env.NATS_URL ?? "nats://127.0.0.1:4222",
  queue: env.JETCREW_QUEUE ?? "node",
  slots: Number(env.JETCREW_SLOTS ?? 4),
  prefix: env.JETCREW_PREFIX ?? "jc",
  drain: Number(env.JETCREW_DRAIN_MS ?? 20_000),
});
process.once("SIGTERM", () => worker.stop());
process.once("SIGINT", () => worker.stop());
await worker.run();

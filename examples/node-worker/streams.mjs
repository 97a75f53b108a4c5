// The streams of the contract and the consumer of a queue: made by whoever comes first, compared by everybody else.
import { ACK_WAIT, api } from "./wire.mjs";

const EXISTS = [10058, 10148, 10013]; // with other settings: compare them
const SECOND = 1e9; // nanoseconds

const stream = (name, settings) => ({ name, storage: "file", num_replicas: 1, allow_direct: true, retention: "limits", ...settings });

const streams = (prefix) => [
  stream(`${prefix.toUpperCase()}_WORK`, {
    subjects: [`${prefix}.work.*.*`], retention: "workqueue", discard: "new", allow_msg_ttl: true,
  }),
  stream(`${prefix.toUpperCase()}_RUNS`, {
    subjects: [`${prefix}.run.>`], discard: "new", discard_new_per_subject: true, max_msgs_per_subject: 1,
    republish: { src: `${prefix}.run.>`, dest: `${prefix}.live.>` },
  }),
  stream(`${prefix.toUpperCase()}_DEAD`, { subjects: [`${prefix}.dead.*`], discard: "old", max_age: 30 * 86_400 * SECOND }),
  stream(`KV_${prefix}_catalog`, {
    subjects: [`$KV.${prefix}_catalog.>`], discard: "new", max_msgs_per_subject: 1, duplicate_window: 120 * SECOND, allow_msg_ttl: true,
    allow_rollup_hdrs: true, deny_delete: true, subject_delete_marker_ttl: SECOND,
  }),
];

/** Makes the streams of a prefix exist; throws when one has settings that break the protocol. */
export async function ensureStreams(nc, prefix) {
  for (const want of streams(prefix)) {
    await ensure(nc, `STREAM.CREATE.${want.name}`, want, `STREAM.INFO.${want.name}`, want);
  }
}

/** Makes the one durable consumer of a queue exist. */
export async function ensureConsumer(nc, { work, filter }, queue) {
  const want = {
    durable_name: queue, filter_subject: filter(queue), deliver_policy: "all", replay_policy: "instant",
    ack_policy: "explicit", ack_wait: ACK_WAIT * 1e6, max_deliver: -1, max_ack_pending: -1, max_waiting: 4096,
  };
  const body = { stream_name: work, config: want, action: "create" };
  await ensure(nc, `CONSUMER.DURABLE.CREATE.${work}.${queue}`, body, `CONSUMER.INFO.${work}.${queue}`, want);
}

async function ensure(nc, create, body, info, want) {
  try {
    await api(nc, create, body);
    return;
  } catch (err) {
    if (!EXISTS.includes(err.code)) throw err;
  }
  const { config: live } = await api(nc, info);
  const operators = ["num_replicas", "storage", "duplicate_window", "max_waiting", "max_ack_pending"];
  for (const [key, value] of Object.entries(want)) {
    if (!operators.includes(key) && !contains(live[key], value)) {
      throw new Error(`${info}: ${key} is ${JSON.stringify(live[key])}, want ${JSON.stringify(value)}`);
    }
  }
}

/** Tells whether a live setting has everything that is wanted; the server adds what it knows. */
function contains(live, want) {
  if (want === null || typeof want !== "object") return live === want;
  return live !== null && typeof live === "object" && Object.entries(want).every(([k, v]) => contains(live[k], v));
}

// Sending a message so that it arrives once, whatever the line does.

import { pause } from "./dom.js";

const TRIES = 3;
const TRY_AGAIN_MS = 800;

/** Post a message, again when the line broke: the key makes that harmless, the server answers what the first one began. */
export async function post(api, body, key) {
  const headers = key ? { "Idempotency-Key": key } : {};
  for (let tried = 1; ; tried += 1) {
    try {
      return await api.open("chat", { method: "POST", body, headers });
    } catch (error) {
      const reused = error.code === "idempotency_key_reused";
      if (reused) headers["Idempotency-Key"] = crypto.getRandomValues(new Uint32Array(4)).join("-");
      if (!reused && (error.status !== 0 || !key)) throw error;
      if (tried >= TRIES) throw error;
      if (!reused) await pause(TRY_AGAIN_MS * tried);
    }
  }
}

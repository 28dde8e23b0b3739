/**
 * Tidemark's client: watch any question of the API, in browsers and in Node.
 *
 *     import { watch, ageOf } from "https://host/client.js";
 *     const end = watch("/v1/top?by=rising&last=5m", (u) => console.log(u.answer, ageOf(u)));
 */
export * from "./answers";
export { ageOf, Client, watch, type ClientOptions, type Line, type Listener, type Update, type Way } from "./client";
export { Damping, type DampingOptions } from "./damping";

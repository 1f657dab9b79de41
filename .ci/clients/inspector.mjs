// The MCP Inspector's command line against the same server: schemas must be
// portable, and an error must be one.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";

const command = process.argv[2];
const ask = (...args) => spawnSync("node", ["node_modules/.bin/inspector", "--cli", command, "serve", "--profile", "demo", ...args], { encoding: "utf8", timeout: 60000 });

const list = ask("--method", "tools/list", "--strict");
assert.equal(list.status, 0, list.stdout + list.stderr);
const call = ask("--method", "tools/call", "--tool-name", "get_guest_config", "--tool-arg", "guest=102");
assert.equal(call.status, 0, call.stdout + call.stderr);
assert.match(call.stdout, /immich/);
const bad = ask("--method", "tools/call", "--tool-name", "get_guest_config", "--tool-arg", "guest=99");
assert.equal(bad.status, 5, bad.stdout + bad.stderr);
console.log("MCP Inspector: ok");

// Fetches a URL through a proxy's CONNECT: client.js PROXY_PORT ROOT URL; PROXY_USER may be user:password.
const fs = require("fs");
const http = require("http");
const https = require("https");
const tls = require("tls");

const [port, root, address] = process.argv.slice(2);
const url = new URL(address);
const authority = `${url.hostname}:${url.port || 443}`;
const fail = (error) => {
  console.error(String(error));
  process.exit(1);
};

const user = process.env.PROXY_USER;
const headers = user ? { "Proxy-Authorization": `Basic ${Buffer.from(user).toString("base64")}` } : {};
const connect = http.request({
  host: "127.0.0.1", port, method: "CONNECT", path: authority, headers, timeout: 15000,
});
connect.on("error", fail);
connect.on("timeout", () => fail("time-out"));
connect.on("connect", (reply, socket) => {
  if (reply.statusCode !== 200) return fail(`proxy answered ${reply.statusCode}`);
  const secure = tls.connect({ socket, servername: url.hostname, ca: fs.readFileSync(root) });
  secure.on("error", fail);
  const request = https.get(url, { createConnection: () => secure }, (answer) => {
    answer.pipe(process.stdout);
    answer.on("end", () => process.exit(answer.statusCode === 200 ? 0 : 1));
  });
  request.on("error", fail);
});
connect.end();

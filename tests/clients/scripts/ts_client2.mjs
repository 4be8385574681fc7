// The official TypeScript client, 2.x (@modelcontextprotocol/client): legacy unless asked for auto.

import { require, run } from './conversation.mjs';

const { Client, StreamableHTTPClientTransport } = require('@modelcontextprotocol/client');
const { StdioClientTransport } = require('@modelcontextprotocol/client/stdio');

function connect({ url, command, headers, mode }) {
  const client = new Client({ name: 'harness', version: '1' }, { versionNegotiation: { mode } });
  if (url === undefined) {
    return { client, transport: new StdioClientTransport({ command: command[0], args: command.slice(1) }) };
  }
  return { client, transport: new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } }) };
}

await run('@modelcontextprotocol/client', connect, async (client) => {
  const hasPing = client.getProtocolEra() === 'legacy';
  if (hasPing) await client.ping();
  return { protocol_version: client.getNegotiatedProtocolVersion(), ping: hasPing || null };
});

// The official TypeScript client, 1.x (@modelcontextprotocol/sdk).

import { require, run } from './conversation.mjs';

const { Client } = require('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js');
const { StreamableHTTPClientTransport } = require('@modelcontextprotocol/sdk/client/streamableHttp.js');

function connect({ url, command, headers }) {
  const client = new Client({ name: 'harness', version: '1' });
  if (url === undefined) {
    return { client, transport: agreed(new StdioClientTransport({ command: command[0], args: command.slice(1) })) };
  }
  return { client, transport: agreed(new StreamableHTTPClientTransport(new URL(url), { requestInit: { headers } })) };
}

/** The client tells its transport which version was agreed on, and nobody else. */
function agreed(transport) {
  const tell = transport.setProtocolVersion?.bind(transport);
  transport.setProtocolVersion = (agreedVersion) => {
    transport.agreedVersion = agreedVersion;
    tell?.(agreedVersion);
  };
  return transport;
}

await run('@modelcontextprotocol/sdk', connect, async (client, transport) => {
  await client.ping();
  return { protocol_version: transport.agreedVersion, ping: true };
});

// What both TypeScript clients do and report; the counterpart of conversation.py.
// Libraries come from NODE_PATH, which only `require` looks at: the folder of this file has none.

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { format, parseArgs } from 'node:util';

export const require = createRequire(import.meta.url);

const CONVERSATION_MS_MAX = 60_000;
const UNKNOWN_TOOL = 'no_such_tool';
const MISSING_PATH = 'no/such/document.md';

function options() {
  // Everything after --stdio belongs to the server's command, its own flags too.
  const given = process.argv.slice(2);
  const at = given.indexOf('--stdio');
  const command = at < 0 ? [] : given.splice(at).slice(1);
  const { values } = parseArgs({
    args: given,
    options: {
      url: { type: 'string' },
      header: { type: 'string', multiple: true, default: [] },
      path: { type: 'string' },
      mode: { type: 'string', default: 'auto' },
    },
  });
  if ((values.url === undefined) === (command.length === 0)) throw new Error('give either --url or --stdio');
  if (values.path === undefined) throw new Error('give --path');
  const headers = Object.fromEntries(
    values.header.map((header) => [header.slice(0, header.indexOf('=')), header.slice(header.indexOf('=') + 1)]),
  );
  return { url: values.url, command, headers, path: values.path, mode: values.mode };
}

/** A list that grows with each warning or worse, whichever way it is given. */
function recordWarnings() {
  const recorded = [];
  for (const level of ['warn', 'error']) {
    console[level] = (...parts) => recorded.push(`console.${level}: ${format(...parts)}`);
  }
  process.on('warning', (warning) => recorded.push(`process: ${warning.message}`));
  return recorded;
}

function named(packageName) {
  const { version } = JSON.parse(readFileSync(join(process.env.NODE_PATH, packageName, 'package.json'), 'utf8'));
  return `${packageName} ${version}`;
}

async function errorOf(request) {
  try {
    await request;
  } catch (error) {
    return { code: error.code, message: error.message };
  }
  return null;
}

async function converse(client, { path }) {
  const call = (name, given) => client.callTool({ name, arguments: given });
  const { tools } = await client.listTools();
  const documents = await call('list_documents', {});
  const document = await call('get_document', { path });
  const missing = await call('get_document', { path: MISSING_PATH });
  const unknownToolError = await errorOf(call(UNKNOWN_TOOL, {}));
  const { resources } = await client.listResources();
  const first = resources.length ? (await client.readResource({ uri: resources[0].uri })).contents : null;
  const { resourceTemplates } = await client.listResourceTemplates();
  const { prompts } = await client.listPrompts();
  return {
    server_info: client.getServerVersion() ?? null,
    tools: tools.map((tool) => tool.name),
    list_documents: documents,
    get_document: document,
    missing,
    unknown_tool_error: unknownToolError,
    resources: {
      uris: resources.map((resource) => resource.uri),
      first,
      templates: resourceTemplates.map((template) => template.uriTemplate),
    },
    prompts: prompts.map((prompt) => prompt.name),
  };
}

/**
 * Hold the conversation and print its report, the only line on stdout.
 *
 * `connect(options)` makes a client and its transport; `describe(client, transport)` gives the
 * version they agreed on and pings where that version has ping.
 */
export async function run(packageName, connect, describe) {
  const given = options();
  const recorded = recordWarnings();
  const tooLong = setTimeout(() => process.exit(3), CONVERSATION_MS_MAX);
  const { client, transport } = connect(given);
  client.onerror = (error) => recorded.push(`onerror: ${error.message}`);
  await client.connect(transport);
  const report = { ...(await converse(client, given)), ...(await describe(client, transport)) };
  // Sends the DELETE a polite client ends its session with.
  await transport.terminateSession?.();
  await client.close();
  clearTimeout(tooLong);
  process.stdout.write(`${JSON.stringify({ client: named(packageName), ...report, warnings: recorded })}\n`);
}

// This does what an editor does with `.vscode/mcp.json`: it mounts the servers, offers their tools
// to its model, and calls those that the model chooses. Here you are the model.
//
//   REFLEX_KEY=… npx node examples/editor/ask.ts
//   REFLEX_KEY=… npx node examples/editor/ask.ts reflex-inspect read_log '{"scope": "ssh/web-1"}'
//
// Without arguments it lists the tools. REFLEX_URL replaces the address of the local server.

import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'

type Server = { url: string; headers: Record<string, string> }

const { REFLEX_KEY, REFLEX_URL } = process.env
if (!REFLEX_KEY) {
  console.error('Set REFLEX_KEY to a key with the role viewer, and publisher for calls of skills.')
  process.exit(2)
}
const text = await readFile(join(import.meta.dirname, '.vscode/mcp.json'), 'utf8')
// An editor asks for the inputs; each value becomes a part of a JSON text.
const { servers }: { servers: Record<string, Server> } = JSON.parse(
  text.replaceAll('${input:reflex-key}', JSON.stringify(REFLEX_KEY).slice(1, -1)),
)

const [name, tool, input = '{}'] = process.argv.slice(2)
if (name === undefined) for (const server of Object.keys(servers)) await listTools(server)
else process.exitCode = tool === undefined ? await listTools(name) : await call(name, tool, JSON.parse(input) as Record<string, unknown>)

async function listTools(server: string): Promise<number> {
  return mounted(server, async (client) => {
    const { tools } = await client.listTools()
    console.log(`${server}: ${tools.length} tools`)
    for (const { name: tool, description = '' } of tools) console.log(`  ${tool}: ${description}`)
    return 0
  })
}

/** Prints what the model would read. */
async function call(server: string, toolName: string, given: Record<string, unknown>): Promise<number> {
  return mounted(server, async (client) => {
    const { content, isError } = await client.callTool({ name: toolName, arguments: given })
    for (const block of content) console.log(block.type === 'text' ? block.text : `(${block.type})`)
    return isError ? 1 : 0
  })
}

async function mounted<Result>(server: string, work: (client: Client) => Promise<Result>): Promise<Result> {
  const found = servers[server]
  if (!found) throw new Error(`mcp.json has no server ${server}: it has ${Object.keys(servers).join(', ')}`)
  const { pathname, search } = new URL(found.url)
  const url = REFLEX_URL === undefined ? new URL(found.url) : new URL(pathname + search, REFLEX_URL)
  const client = new Client({ name: 'an editor', version: '1' })
  await client.connect(new StreamableHTTPClientTransport(url, { requestInit: { headers: found.headers } }))
  try {
    return await work(client)
  } finally {
    await client.close()
  }
}

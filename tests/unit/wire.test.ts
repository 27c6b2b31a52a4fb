import { asSchema } from 'ai'
import type { Command } from 'commander'
import { describe, expect, test, vi } from 'vitest'
import { reflexProgram } from '../../cli/reflex/program.ts'
import { buildRegistry } from '../../src/agent/registry.ts'
import { type Toolbox, toolSet } from '../../src/agent/toolbox.ts'
import { features } from '../../src/features/index.ts'
import { createApp } from '../../src/http/app.ts'
import type { TraderParts } from '../../src/features/market/tools/trader.ts'
import { marketTools } from '../../src/features/market/tools/tools.ts'
import { reflexTools } from '../../src/engine/reflexes/tools.ts'

// Node has no modules of WebAssembly, and nothing here runs a reflex.
vi.mock('../../src/reflexes/engine/sandbox.wasm', () => ({ default: {} }))

/** Names a stored file. After a change that is meant, `npm run golden:wire` stores it again. */
const stored = (name: string): string => `../golden/wire/${name}.txt`
type Entries = Iterable<readonly [string, unknown]>

/** A line for each entry, so that a difference shows its place. */
const lines = (entries: Entries): string => Array.from(entries, ([name, value]) => `${name} ${JSON.stringify(value)}\n`).join('')

const LARGE = 200

/** Writes each large part once: what a problem looks like is in each operation. */
function linesOnce(entries: Entries): string {
  const first = new Map<string, string>()
  return Array.from(entries, ([place, value]) => {
    const once = (name: string, part: unknown): unknown => {
      const text = typeof part === 'object' && part !== null ? JSON.stringify(part) : ''
      if (text.length < LARGE) return part
      const known = first.get(text)
      first.set(text, known ?? `${place} ${name}`)
      return known === undefined ? part : `as in ${known}`
    }
    return `${place} ${JSON.stringify(value, once)}\n`
  }).join('')
}

const KEY = 'key-of-the-wire-test'
const app = createApp(buildRegistry([]), features)

describe('the description of the API', () => {
  type Named = Record<string, Record<string, unknown>>
  const within = (named: Named): [string, unknown][] =>
    Object.entries(named).flatMap(([name, parts]) =>
      Object.entries(parts).map(([part, value]): [string, unknown] => [`${name} ${part}`, value]),
    )

  /** The order of the members of an operation means nothing. */
  const sorted = (entries: [string, unknown][]) =>
    entries.map(([name, value]): [string, unknown] => [name, Object.fromEntries(Object.entries(value as object).toSorted(byName))])
  const byName = ([one]: [string, unknown], [other]: [string, unknown]) => (one < other ? -1 : 1)

  test('is the stored one', async () => {
    const response = await app.request('/v1/openapi.json', {}, {})
    const { paths, components, ...rest } = (await response.json()) as { paths: Named; components: Named }
    const parts = [...within(components), ...sorted(within(paths))].toSorted(byName)
    await expect(linesOnce([...Object.entries(rest), ...parts])).toMatchFileSnapshot(stored('openapi'))
  })
})

describe('the tools that models are shown', () => {
  test('are the stored ones over MCP', async () => {
    const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
    const response = await app.request('/v1/mcp/inspect', { method: 'POST', headers, body }, { REFLEX_ADMIN_KEY: KEY })
    const { result } = (await response.json()) as { result: { tools: { name: string }[] } }
    await expect(lines(result.tools.map(({ name, ...tool }) => [name, tool] as const))).toMatchFileSnapshot(stored('mcp-tools'))
  })

  test('are the stored ones in a turn', async () => {
    // A definition asks its scope for parts only once it is called.
    const parts = { scope: 'shop' } as TraderParts & Parameters<typeof reflexTools>[0]
    const entries = () => Object.entries({ ...marketTools(parts), ...reflexTools(parts) })
    const tools = toolSet({ entries } as Toolbox, () => Promise.resolve(null))
    const shown = Object.entries(tools).map(
      async ([name, { description, inputSchema }]) => [name, { description, input: await asSchema(inputSchema).jsonSchema }] as const,
    )
    await expect(lines(await Promise.all(shown))).toMatchFileSnapshot(stored('agent-tools'))
  })
})

/** The help of a command and of those below it, in 120 columns. */
function helpOf(command: Command, name = command.name()): string[] {
  let help = ''
  const configured = command.configureHelp({ ...command.configureHelp(), helpWidth: 120 })
  configured.configureOutput({ writeOut: (text) => void (help += text) }).outputHelp()
  return [`## ${name}\n\n${help}`, ...command.commands.flatMap((inner) => helpOf(inner, `${name} ${inner.name()}`))]
}

test('the commands of reflex, their options and their help are the stored ones', async () => {
  await expect(helpOf(reflexProgram()).join('\n')).toMatchFileSnapshot(stored('commands'))
})

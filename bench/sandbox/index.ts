import { isolateSandbox } from '../../src/reflexes/isolate-sandbox.ts'
import { runReflex } from '../../src/reflexes/run-reflex.ts'
import type { Program } from '../../src/reflexes/sandbox.ts'
import { hostilePrograms } from '../../tests/support/hostile-programs.ts'
import { contextOf4kB } from './context.ts'
import type { Lane } from './lane.ts'
import { origins } from './origins.ts'
import { bulletin, gate, logging, proxy } from './skills.ts'
import { blocks, timed } from './timed.ts'

const guard = (number: number): Program => {
  const code = `const LIMIT = ${number}
function reflex(context) {
  const failures = context.recent_events.filter((event) => event.type === 'ssh.failed' && event.source === context.event.source)
  if (failures.length < LIMIT % 5 + 3) return null
  return { action_type: 'call_tool', tool: 'block_address', args: { address: context.event.address, failures: failures.length } }
}`
  return { hash: code, code }
}

const run = (program: Program) => timed(() => runReflex(isolateSandbox(), program, contextOf4kB))

export { Lane } from './lane.ts'

type Env = { LANE: DurableObjectNamespace<Lane> }

/** Each request does one thing, so that the first one finds an isolate without reflex runs. */
const measures: Record<string, (env: Env) => unknown> = {
  health: () => 'ok',
  'first-in-isolate': () => run(guard(0)).ms,
  warm: () => blocks(30, 200, () => run(guard(0))),
  'first-of-reflex'() {
    const block = 10
    const firstTen = (from: number) => timed(() => Array.from({ length: block }, (_, number) => run(guard(from + number)))).ms / block
    return Array.from({ length: 10 }, (_, number) => firstTen(1 + number * block))
  },
  gate,
  bulletin,
  origins,
  'tool-proxy': proxy,
  'tool-log': logging,
  'effect-log': ({ LANE }) => LANE.getByName('bench').measure(),
  memory: () => isolateSandbox().bytes,
  fuel: () => run(guard(0)).result.fuel,
  hostile: () =>
    hostilePrograms.map(({ name, code }) => {
      const { ms, result } = run({ hash: name, code })
      return { name, ms, reason: result.reason, fuel: result.fuel }
    }),
}

export default {
  async fetch(request, env) {
    const measure = measures[new URL(request.url).pathname.slice(1)]
    return measure ? Response.json(await measure(env)) : new Response(null, { status: 404 })
  },
} satisfies ExportedHandler<Env>

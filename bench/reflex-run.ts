import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startServer } from '../cli/lib/local-server.ts'
import { median } from './samples.ts'
import { contextOf4kB } from './sandbox/context.ts'

/** Prints the sandbox's figures as measured inside workerd, under wrangler dev: `node bench/reflex-run.ts`. */
type Stopped = { name: string; ms: number; reason: string; fuel: number }

const directory = await mkdtemp(join(tmpdir(), 'reflex-bench-'))
const server = await startServer({ persist_to: directory, config: 'bench/sandbox/wrangler.toml' })
const ask = async <Answer>(what: string): Promise<Answer> => (await (await fetch(`${server.url}/${what}`)).json()) as Answer
try {
  const firstInIsolate = await ask<number>('first-in-isolate')
  for (let round = 0; round < 3; round += 1) await ask('warm')
  const warm = median(await ask<number[]>('warm'))
  const first = await ask<number[]>('first-of-reflex')
  const hostile = (await ask<Stopped[]>('hostile')).filter(({ reason }) => reason === 'limit').toSorted((one, other) => other.ms - one.ms)
  const rows = [
    ['context', `${JSON.stringify(contextOf4kB).length} bytes`],
    ['warm, context in, action out, median', `${(warm * 1000).toFixed(1)} µs`],
    ['its fuel', `${await ask<number>('fuel')}`],
    ['first run of a reflex, median and worst of 100', `${median(first).toFixed(2)} ms, ${Math.max(...first).toFixed(2)} ms`],
    ['first run in an isolate', `${firstInIsolate.toFixed(1)} ms`],
    ['memory of the sandbox with 101 reflexes and the hostile ones', `${((await ask<number>('memory')) / 1024 / 1024).toFixed(1)} MB`],
    [
      'hostile code until it is stopped, median and worst',
      `${median(hostile.map(({ ms }) => ms)).toFixed(1)} ms, ${hostile[0]?.ms.toFixed(1)} ms (${hostile[0]?.name})`,
    ],
  ]
  for (const [what = '', figure = ''] of rows) console.log(`${what.padEnd(64)} ${figure}`)
} finally {
  await server.stop()
  await rm(directory, { recursive: true, force: true })
}

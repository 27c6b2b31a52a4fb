import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startServer } from '../cli/lib/local-server.ts'
import { median } from './figure.ts'
import { contextOf4kB } from './sandbox/context.ts'
import { sandboxClient } from './clients.ts'

/** Prints the measurements behind the sandbox's limits: `node bench/calibrate.ts`. */
const directory = await mkdtemp(join(tmpdir(), 'reflex-bench-'))
const server = await startServer({ persist_to: directory, config: 'bench/sandbox/wrangler.toml' })
const sandbox = sandboxClient(server.url)
try {
  const cold = await sandbox.firstInIsolate()
  for (let round = 0; round < 3; round += 1) await sandbox.warm()
  const warm = median(await sandbox.warm())
  const first = await sandbox.firstOfReflex()
  const hostile = await sandbox.hostile()
  const rows = [
    ['context', `${JSON.stringify(contextOf4kB).length} bytes`],
    ['warm, context in, action out, median', `${(warm * 1000).toFixed(1)} µs`],
    ['its fuel', `${await sandbox.fuel()}`],
    ['first run of a reflex, median and worst of blocks of ten', `${median(first).toFixed(2)} ms, ${Math.max(...first).toFixed(2)} ms`],
    ['first run in an isolate', `${cold.toFixed(1)} ms`],
    ['memory of the sandbox with 101 reflexes and the hostile ones', `${((await sandbox.bytes()) / 1024 / 1024).toFixed(1)} MB`],
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

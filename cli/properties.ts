import { spawnSync } from 'node:child_process'
import { randomInt } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'

// Runs the tests with properties with a seed of its own, many times as long as `npm test` does:
// `npm run test:properties [-- SEED [TIMES]]`. With the seed that a run printed, it runs again.
const MOST_SEED = 2 ** 31
const [seed = String(randomInt(MOST_SEED)), times = '2'] = process.argv.slice(2)
const tests = readdirSync('tests', { recursive: true, encoding: 'utf8' })
  .filter((name) => name.endsWith('.test.ts'))
  .map((name) => path.join('tests', name))
const files = tests.filter((file) => /assertProperty\(|seedsOf\(/.test(readFileSync(file, 'utf8')))

console.log(`seed ${seed}, ${times} times the runs of npm test, ${files.length} files`)
const { status } = spawnSync('npx', ['vitest', 'run', '--testTimeout', '600000', ...files], {
  stdio: 'inherit',
  env: { ...process.env, VITE_PROPERTY_SEED: seed, VITE_PROPERTY_TIMES: times },
})
if (status !== 0) console.log(`To run this again: npm run test:properties -- ${seed} ${times}`)
process.exitCode = status ?? 1

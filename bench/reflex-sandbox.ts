import type { Figure } from './figure.ts'
import type { SandboxClient } from './sandbox-client.ts'

type Alone = Pick<Figure, 'name' | 'what' | 'unit' | 'target'> & { ours: (sandbox: SandboxClient, runs: number) => Promise<number[]> }

/** The sandbox alone, inside workerd. There is nothing bare to compare it with: each figure has its target itself. */
const alone = ({ ours, ...figure }: Alone): Figure => ({
  ...figure,
  async measure({ sandbox, runs, progress }) {
    progress('in the sandbox')
    return { ours: await ours(await sandbox(), runs), bare: [] }
  },
})

/** A first time comes but once: these are measured together, before anything else runs there, whichever figures are asked for. */
const firsts = new WeakMap<SandboxClient, Promise<{ cold: number; first: number[]; bytes: number }>>()
function firstTimes(sandbox: SandboxClient) {
  const known = firsts.get(sandbox) ?? measureFirsts(sandbox)
  firsts.set(sandbox, known)
  return known
}

async function measureFirsts(sandbox: SandboxClient) {
  const cold = await sandbox.firstInIsolate()
  for (let round = 0; round < 3; round += 1) await sandbox.warm()
  return { cold, first: await sandbox.firstOfReflex(), bytes: await sandbox.bytes() }
}

export const reflexWarm = alone({
  name: 'reflex',
  what: 'a reflex, warm: 4 kB of context in, action out',
  unit: 'µs',
  target: { at_most: 100 },
  async ours(sandbox, runs) {
    await firstTimes(sandbox)
    const blocks: number[] = []
    for (let run = 0; run < runs; run += 1) blocks.push(...(await sandbox.warm()))
    return blocks.map((ms) => ms * 1000)
  },
})

export const reflexFirst = alone({
  name: 'reflex-first',
  what: 'the first call of a reflex, which compiles it',
  unit: 'ms',
  target: { at_most: 5 },
  ours: async (sandbox) => (await firstTimes(sandbox)).first,
})

export const reflexCold = alone({
  name: 'reflex-cold',
  what: 'the first call of any reflex in an isolate, which makes the sandbox, too',
  unit: 'ms',
  target: { at_most: 5 },
  ours: async (sandbox) => [(await firstTimes(sandbox)).cold],
})

export const reflexMemory = alone({
  name: 'reflex-memory',
  what: 'a sandbox that has run 101 reflexes, as it counts itself',
  unit: 'MB',
  target: { at_most: 64 },
  ours: async (sandbox) => [(await firstTimes(sandbox)).bytes / 1024 / 1024],
})

export const reflexHostile = alone({
  name: 'reflex-hostile',
  what: 'hostile code until it is stopped, the worst of all',
  unit: 'ms',
  target: { at_most: 100 },
  async ours(sandbox, runs) {
    await firstTimes(sandbox)
    const worst: number[] = []
    for (let run = 0; run < runs; run += 1) worst.push((await sandbox.hostile())[0]?.ms ?? Number.NaN)
    return [Math.max(...worst)]
  },
})

import type { SandboxClient } from '../clients.ts'
import { median, type Figure } from '../figure.ts'

type Alone = Omit<Figure, 'ours' | 'bare'> & { sample: (sandbox: SandboxClient) => Promise<number> }

/** Measured in the sandbox's own server. There is no bare loop: the target is for the value. */
const alone = ({ sample, ...figure }: Alone): Figure => ({
  ...figure,
  async ours(_reflex, bench) {
    const sandbox = await bench.sandbox()
    return { measure: () => sample(sandbox) }
  },
})

/** First runs are measured together, before anything else runs in the isolate. */
const firsts = new WeakMap<SandboxClient, ReturnType<typeof measureFirsts>>()
function firstTimes(sandbox: SandboxClient) {
  const known = firsts.get(sandbox) ?? measureFirsts(sandbox)
  firsts.set(sandbox, known)
  return known
}

async function measureFirsts(sandbox: SandboxClient) {
  const cold = await sandbox.firstInIsolate()
  for (let round = 0; round < 3; round += 1) await sandbox.warm()
  return { cold, first: median(await sandbox.firstOfReflex()), megabytes: (await sandbox.bytes()) / 1024 / 1024 }
}

/** 5 % of a tool that takes 10 ms. */
const SHARE_US = 500

export const sandboxFigures: Figure[] = [
  alone({
    name: 'reflex',
    what: 'a warm reflex: 4 kB of context in, an action out',
    unit: 'µs',
    target: { at_most: 100 },
    async sample(sandbox) {
      await firstTimes(sandbox)
      return median(await sandbox.warm()) * 1000
    },
  }),
  alone({
    name: 'reflex-first',
    what: 'the first call of a reflex, which compiles it',
    unit: 'ms',
    target: { at_most: 5 },
    sample: async (sandbox) => (await firstTimes(sandbox)).first,
  }),
  alone({
    name: 'reflex-cold',
    what: 'the first call of any reflex in an isolate, which also makes the sandbox',
    unit: 'ms',
    target: { at_most: 5 },
    sample: async (sandbox) => (await firstTimes(sandbox)).cold,
  }),
  alone({
    name: 'reflex-memory',
    what: 'a sandbox that has run 101 reflexes, by its own count',
    unit: 'MB',
    target: { at_most: 64 },
    sample: async (sandbox) => (await firstTimes(sandbox)).megabytes,
  }),
  alone({
    name: 'reflex-hostile',
    what: 'hostile code until it is stopped, the slowest of all',
    unit: 'ms',
    target: { at_most: 100 },
    async sample(sandbox) {
      await firstTimes(sandbox)
      return (await sandbox.hostile())[0]?.ms ?? Number.NaN
    },
  }),
  alone({
    name: 'gate',
    what: 'a decision of the gate, 1,000 active skills',
    unit: 'ms',
    target: { at_most: 1 },
    sample: async (sandbox) => median(await sandbox.gate()),
  }),
  alone({
    name: 'origins',
    what: 'who named the arguments of a call, 10,000 outputs',
    unit: 'ms',
    target: { at_most: 1 },
    sample: async (sandbox) => median(await sandbox.origins()),
  }),
  alone({
    name: 'bulletin',
    what: "a turn's bulletin out of 1,000 active skills",
    unit: 'ms',
    target: { at_most: 5 },
    sample: async (sandbox) => median(await sandbox.bulletin()),
  }),
  alone({
    name: 'tool-proxy',
    what: 'what the proxy adds to a call: 5 % of a 10 ms tool',
    unit: 'µs',
    target: { at_most: SHARE_US },
    sample: async (sandbox) => median(await sandbox.toolProxy()) * 1000,
  }),
  alone({
    name: 'tool-log',
    what: 'what logging adds to a call: 5 % of a 10 ms tool',
    unit: 'µs',
    target: { at_most: SHARE_US },
    sample: async (sandbox) => median(await sandbox.toolLog()) * 1000,
  }),
  alone({
    name: 'effect-log',
    what: "what the log and its spans add to a call on a scope's effect lane: 5 % of a 10 ms tool",
    unit: 'µs',
    target: { at_most: SHARE_US },
    sample: async (sandbox) => median(await sandbox.effectLog()) * 1000,
  }),
]

import type { Figure } from './figure.ts'
import type { SandboxClient } from './sandbox-client.ts'

const repeated = (
  figure: Pick<Figure, 'name' | 'what' | 'unit' | 'target'>,
  ask: (sandbox: SandboxClient) => Promise<number[]>,
  scale = 1,
): Figure => ({
  ...figure,
  async measure({ sandbox, runs, progress }) {
    progress('inside workerd')
    const client = await sandbox()
    await ask(client)
    const samples: number[] = []
    for (let run = 0; run < runs; run += 1) samples.push(...(await ask(client)))
    return { ours: samples.map((ms) => ms * scale), bare: [] }
  },
})

export const gateDecision = repeated(
  { name: 'gate', what: 'a decision of the gate, 1,000 active skills', unit: 'ms', target: { at_most: 1 } },
  (sandbox) => sandbox.gate(),
)

export const bulletin = repeated(
  { name: 'bulletin', what: "a turn's bulletin out of 1,000 active skills", unit: 'ms', target: { at_most: 5 } },
  (sandbox) => sandbox.bulletin(),
)

/** 5 % of a tool that takes 10 ms. */
const SHARE_US = 500

export const toolProxy = repeated(
  { name: 'tool-proxy', what: 'what the proxy adds to a call: 5 % of a 10 ms tool', unit: 'µs', target: { at_most: SHARE_US } },
  (sandbox) => sandbox.toolProxy(),
  1000,
)

export const toolLog = repeated(
  { name: 'tool-log', what: 'what logging adds to a call: 5 % of a 10 ms tool', unit: 'µs', target: { at_most: SHARE_US } },
  (sandbox) => sandbox.toolLog(),
  1000,
)

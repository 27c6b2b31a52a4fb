import { send } from './http.ts'

/** A hostile program, and what stopped it. */
export type Stopped = { name: string; ms: number; reason: string; fuel: number }
export type SandboxClient = ReturnType<typeof sandboxClient>

/** Each of these is measured inside workerd, whose clock counts in milliseconds: what is shorter is measured in blocks. */
export function sandboxClient(url: string) {
  const ask = async <Answer>(what: string): Promise<Answer> => JSON.parse(await send(`${url}/${what}`)) as Answer
  return {
    /** ms; only the first time it is asked. */
    firstInIsolate: () => ask<number>('first-in-isolate'),
    /** ms a run, of 30 blocks. */
    warm: () => ask<number[]>('warm'),
    /** ms a run, of ten blocks of ten reflexes that were never run before; only the first time it is asked. */
    firstOfReflex: () => ask<number[]>('first-of-reflex'),
    /** ms each, of blocks. */
    gate: () => ask<number[]>('gate'),
    bulletin: () => ask<number[]>('bulletin'),
    toolProxy: () => ask<number[]>('tool-proxy'),
    toolLog: () => ask<number[]>('tool-log'),
    bytes: () => ask<number>('memory'),
    fuel: () => ask<number>('fuel'),
    async hostile(): Promise<Stopped[]> {
      const all = await ask<Stopped[]>('hostile')
      return all.filter(({ reason }) => reason === 'limit').toSorted((one, other) => other.ms - one.ms)
    },
  }
}

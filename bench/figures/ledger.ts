import { randomUUID } from 'node:crypto'
import type { ReflexClient } from '../clients.ts'
import type { Figure } from '../figure.ts'
import { loginLines, rate } from '../load.ts'

const TRANSFERS = 20_000
const BATCH = 1000
const SINGLES = 300

/** An account of a new scope with scrip for the whole benchmark. */
async function payer(reflex: ReflexClient): Promise<string> {
  const scope = `bench-ledger/${randomUUID().slice(0, 8)}`
  await reflex.configure(scope, {})
  await reflex.quiet(scope)
  await reflex.ledger('mint', { id: randomUUID(), to: `scope:${scope}`, amount: 1_000_000_000 })
  return `scope:${scope}`
}

const transfersOf = (debit: string, credit: string, count: number) =>
  Array.from({ length: count }, () => ({ id: randomUUID(), debit, credit, amount: 1 }))

export const ledgerBatches: Figure = {
  name: 'ledger',
  what: 'POST /v1/ledger/transfers in batches of 1,000',
  unit: 'transfers/s',
  target: { at_least: 5000 },
  async ours(reflex, bench) {
    const [debit, credit] = [await payer(reflex), await payer(reflex)]
    const batches = Math.max(1, bench.count(TRANSFERS) / BATCH)
    return {
      async measure() {
        const all = Array.from({ length: batches }, () => transfersOf(debit, credit, BATCH))
        return rate(batches * BATCH, async () => {
          for (const batch of all) await reflex.ledger('transfers', batch)
        })
      },
    }
  },
}

/** The median time of requests that are sent one after the other. */
async function median(count: number, request: () => Promise<unknown>): Promise<number> {
  const times: number[] = []
  for (let index = 0; index < count; index += 1) {
    const start = performance.now()
    await request()
    times.push(performance.now() - start)
  }
  return times.toSorted((a, b) => a - b)[Math.floor(count / 2)] ?? 0
}

export const ledgerSingle: Figure = {
  name: 'ledger-single',
  what: 'one transfer a request, p50, against an insert into D1',
  unit: 'ms',
  target: { at_most: 2 },
  worst: 5,
  async ours(reflex, bench) {
    const [debit, credit] = [await payer(reflex), await payer(reflex)]
    return { measure: () => median(bench.count(SINGLES), () => reflex.ledger('transfers', transfersOf(debit, credit, 1))) }
  },
  async bare({ bare, ...bench }) {
    return { measure: () => median(bench.count(SINGLES), () => bare.insert(JSON.stringify(loginLines(1, () => 'ledger')))) }
  },
}

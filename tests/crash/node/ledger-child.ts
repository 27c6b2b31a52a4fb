import { openLedger } from '../../support/ledger.ts'

/**
 * A process that does random operations on a ledger and kills itself before one of its statements.
 * It prints each result, once the transaction has committed.
 */
const [file = '', round = '0', dies_at = '0'] = process.argv.slice(2)
const OPERATIONS = 10
const ACCOUNTS = ['scope:a', 'scope:b', 'scope:c', 'key:d']

let state = Number(round) * 7919 + 1
const random = (below: number): number => {
  state = (state * 48_271) % 2_147_483_647
  return state % below
}
const any = (): string => ACCOUNTS[random(ACCOUNTS.length)] ?? ''

let statements = 0
const { ledger, transaction } = openLedger(file, () => {
  statements += 1
  if (statements === Number(dies_at)) process.kill(process.pid, 'SIGKILL')
})
for (let index = 0; index < OPERATIONS; index += 1) {
  const id = `${round}-${index}`
  const now = Number(round) * 1000 + index
  const earlier = `${Math.max(0, Number(round) - random(3))}-${random(OPERATIONS)}`
  const made = transaction(() => {
    ledger.expire(now)
    if (random(5) === 0) return [ledger.mint({ id, to: any(), amount: 1 + random(100) }, { opens: ACCOUNTS }, now)]
    const asked = [
      { id, debit: any(), credit: any(), amount: 1 + random(60), pending: random(2) === 0 },
      { id, pending_id: earlier, post: 1 + random(40) },
      { id, pending_id: earlier, void: true as const },
    ][random(3)]
    const timed = asked?.pending ? { ...asked, timeout_s: 1 + random(3) } : asked
    const pair = [
      { ...timed, id, linked: true },
      { id: `${id}-second`, debit: any(), credit: any(), amount: 1 + random(60) },
    ]
    return ledger.transfer(random(3) === 0 ? pair : [{ ...timed, id }], { opens: ACCOUNTS, privileged: false }, now)
  })
  process.stdout.write(`${JSON.stringify(made)}\n`)
}

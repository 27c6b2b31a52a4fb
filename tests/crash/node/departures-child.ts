import { openDeparting } from '../../support/departures.ts'

/** A process that lets old history leave a ledger, and kills itself before a statement. */
const [folder = '', dies_at = '0'] = process.argv.slice(2)

let statements = 0
const { pass } = openDeparting(folder, () => {
  statements += 1
  if (statements === Number(dies_at)) process.kill(process.pid, 'SIGKILL')
})
await pass()
process.stdout.write(String(statements))

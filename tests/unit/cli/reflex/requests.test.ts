import { afterEach, expect, test, vi } from 'vitest'
import { reflexHere } from '../../../e2e/command-line.ts'
import { answers } from '../../../support/answers.ts'

/** The commands of each resource, with all of their options. `_` is a space within a word. */
const commands = `
keys list
keys list --limit 3
keys create ci --role publisher viewer
keys create ci --role publisher --scope team-a/* team-b
keys create ci
keys revoke a b/c
timers list shop/berlin
timers list empty
timers set shop/berlin poll --every 60
timers set shop/berlin poll --cron 0_6_*_*_*
timers set shop/berlin poll --at 2026-11-23T05:00:00Z
timers set shop/berlin poll
timers set shop/berlin poll --every 60 --at 2026-11-23T05:00:00Z
timers set shop/berlin poll --every soon
timers remove shop/berlin poll
market search
market search _
market search to greet --kind licence --type order.new --tool pay --seller scope:shop --max-price 9 --sort price --limit 5
market search --kind gift
market show listing-1
market list reflex:greet@1 --kind licence --price 30 --seller scope:shop
market list reflex:greet@1 --kind copy --price 30 --seller scope:shop --days 3 --fires 4 --per-decision 1 --scopes 2 --resale --royalty 9 --trial-fee 2 --expires 2026-11-22
market list reflex:greet@1 --kind copy --price 30 --seller scope:shop --scopes any
market list reflex:greet@1
market unlist listing-1
market try listing-1 --scope shop/berlin --since 2026-11-22T05:00:00Z --id trial-1
market offer listing-1 --buyer scope:shop
market offer listing-1 --buyer scope:shop --price 7 --scope shop/berlin shop/paris --timeout 60 --id deal-1
market deals --account scope:shop
market deal deal-1
market accept deal-1
market reject deal-1 --reason no
market cancel deal-1
market refund deal-1
market contract propose reflex:menu --proposer scope:shop --counterparty scope:cook --price 2 --limit 100
market contract propose reflex:menu --proposer scope:shop --counterparty scope:cook --price 2 --limit 100 --id contract-1
market contract list --account scope:shop --limit 2
market contract show contract-1
market contract accept contract-1
market contract reject contract-1 --reason no
market contract end contract-1
market contract dispute contract-1 --reason wrong --trace aa bb
ledger accounts
ledger account scope:shop
ledger statement scope:shop --limit 7
ledger report scope:shop --by code --since 2026-11-20 --until 2026-11-22
ledger audit
ledger mint scope:shop 1000 --memo budget
ledger pay scope:shop scope:cook 5 --id order-17 --memo thanks --code food --pending --timeout 60
ledger pay scope:shop scope:cook 5 --timeout 60
ledger post order-17 --amount 3 --debit scope:shop
ledger post order-17
ledger void order-17 --id void-1
approvals list
approvals list --status any --scope shop/berlin --limit 2
approvals show approval-1
approvals approve approval-1
approvals approve approval-1 --set to=team@example.com --set copies=2
approvals reject approval-1 --reason no
promotions list --status failed --skill deploy.app
promotions show promotion-1
promotions request deploy.app@1.0.0 --from dev --to staging prod --reason ready
promotions request deploy.app --from dev --to staging
promotions approve promotion-1 --reason fine
promotions reject promotion-1
policy check deploy.app@1.0.0 --env dev prod --project shop --role operator
policy check deploy.app --env dev
dlq groups --scope shop/berlin
dlq list --scope shop/berlin --type order.new
dlq show letter-1
dlq show letter-2
dlq retry letter-1
dlq retry --all --limit 2
dlq retry --scope shop/berlin
dlq retry
dlq discard letter-1 letter-2
events show event-1
events show event-1 --scope shop/berlin
scope show shop/berlin
scope show new
scope context shop/berlin
scope context shop/berlin --limit 2 --at 7
scope context shop/berlin --at soon
reflex templates
ledger pay scope:shop scope:cook many
ledger void order-17 --debit scope:shop
alerts list --name tool-failing --since 2026-11-20
audit list --scope shop/* --key ci --action createKey --since 2026-11-20 --limit 2
scope list
scope list --state open --limit 3
scope cancel shop/berlin
scope cancel idle --reason astray
scope ask shop/berlin
scope ask idle
reflex list
reflex list --search greet --state active
skill list --search deploy --state active
skill activate deploy.app@1.0.0
skill activate deploy.app@1.0.0 --state deprecated --reason old
learn runs --scope shop/berlin --status done
trace list
trace list --scope shop/berlin --agent chat --kind turn --skill deploy.app --status completed --min-duration 5 --since 2026-11-20 --until 2026-11-22 --limit 2
events list --scope shop/berlin --type order.new --status pending --partial --since 2026-11-20 --until 2026-11-22
`

const anyId = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g
const url = 'https://reflex.test'
const variables = { REFLEX_URL: url, REFLEX_KEY: 'key-of-the-test' }
afterEach(() => vi.unstubAllGlobals())

/** The order of fields means nothing. */
const sorted = (body = 'null'): string =>
  body === 'null'
    ? ''
    : JSON.stringify(Object.fromEntries(Object.entries(JSON.parse(body) as object).toSorted(([one], [other]) => (one < other ? -1 : 1))))

/** A command's requests and output: for people, and as JSON. */
async function said(line: string): Promise<string> {
  const args = line.split(' ').map((word) => word.replaceAll('_', ' '))
  let requests = ''
  vi.stubGlobal('fetch', (address: string, { method, body }: { method: string; body?: string }) => {
    const path = address.slice(url.length)
    const [place, query = ''] = path.split('?')
    requests += `${method} ${place} ${query.split('&').toSorted().join('&')} ${sorted(body)}`.trim() + '\n'
    const answer = answers[`${method} ${place}`]
    return Promise.resolve(
      answer === null ? new Response(null, { status: 204 }) : Response.json(answer ?? {}, { status: answer ? 200 : 404 }),
    )
  })
  const people = await reflexHere(args, variables)
  const asked = requests
  const { stdout } = await reflexHere([...args, '--json'], variables)
  const { code } = people
  const shown = JSON.stringify({ people: people.stdout, notes: people.stderr, json: stdout.replaceAll(/\n */g, ' ') }, null, 1)
  return `## ${line} (${code})\n${asked}${shown.replaceAll(String.raw`\n`, '\n')}\n`.replaceAll(anyId, 'ID')
}

test('each command sends and prints what is stored', async () => {
  const all: string[] = []
  for (const line of commands.trim().split('\n')) all.push(await said(line))
  await expect(all.join('\n')).toMatchFileSnapshot('../../../golden/wire/requests.txt')
})

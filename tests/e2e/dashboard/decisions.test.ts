import { mkdtemp, readFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import type { Page } from 'playwright-core'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { LocalServer } from '../../../cli/lib/local-server.ts'
import type { Span, TraceReport } from '../../../src/contract/reports/trace.ts'
import type { DecisionWhy } from '../../../src/features/learning/contract/why.ts'
import { ask, eventually, scopePath } from '../api.ts'
import { reflex } from '../command-line.ts'
import { audit, closePages, startDashboard, type Dashboard } from './harness.ts'
import { learnedRun, seedDecision, TRIAGE } from './seed.ts'

const SCOPE = 'ssh/web-1'
const REFLEX = 'ssh-brute-force'
const BLOCKED = '203.0.113.45'

type Summary = { metrics: { metric: string; total: number | null }[] }
type Entry = { trace_id: string; span_id: string; input: { address?: string }; skill_id: string; tool: string; step?: object }
let dashboard: Dashboard
/** The traces of the block of an address, and of the network block that waits for approval. */
let block: Entry
let held: Entry

beforeAll(async () => {
  dashboard = await startDashboard({ demo: true, seed, more: { REFLEX_RECEIPTS_KEY: await newKeys() } })
  const effects = await entries('effect-started')
  const gates = await entries('skill-decided')
  block = found(effects.find(({ input }) => input.address === BLOCKED))
  held = found(gates.find(({ skill_id }) => skill_id === 'network.block'))
})
afterAll(() => dashboard?.close())

async function newKeys(): Promise<string> {
  const directory = await mkdtemp(path.join(tmpdir(), 'reflex-keys-'))
  await reflex(['receipts', 'init', '--output', path.join(directory, 'key.json')])
  const text = await readFile(path.join(directory, 'key.json'), 'utf8')
  return text.trim()
}

/** A second version of the demo's reflex in shadow mode. */
async function seed(server: LocalServer): Promise<void> {
  const { code } = await ask<{ code: string }>(server.url, `/v1/reflexes/${REFLEX}`)
  const body = { id: REFLEX, code: `${code}\n// The second version.\n`, description: 'Blocks addresses', state: 'shadow' }
  await ask(server.url, '/v1/reflexes', { body })
  await seedDecision(server)
}

const entries = async (kind: string): Promise<Entry[]> =>
  (await ask<{ items: Entry[] }>(dashboard.url, `${scopePath(SCOPE)}/log?kind=${kind}&limit=1000`)).items

function found<Value>(value: Value | undefined): Value {
  if (value === undefined) throw new Error('The demo did not leave what this test needs.')
  return value
}

const chain = (page: Page) => page.getByRole('region', { name: 'Why' })

test('lists in words what a scope did, by a search that can be shared', async () => {
  const { page, faults } = await dashboard.open('/traces')
  await page.getByLabel('Search').fill('203.0.113.45')
  await page.getByLabel('Scope').fill(SCOPE)
  await page.getByLabel('Decider').selectOption('reflex')
  await page.getByRole('button', { name: 'Filter' }).click()
  await page.waitForURL(/q=203\.0\.113\.45&decider=reflex&scope=ssh%2Fweb-1/)
  const row = page.getByRole('region', { name: 'Activity' }).getByRole('row', { name: 'blocked 203.0.113.45' })
  await row.getByText(REFLEX).waitFor()
  await row.getByText('$0', { exact: true }).waitFor()
  expect(await audit(page)).toEqual([])
  await page.reload()
  await row.waitFor()
  expect(await page.getByLabel('Search').inputValue()).toBe('203.0.113.45')
  await row.getByRole('link', { name: /^blocked 203/ }).click()
  await page.getByRole('heading', { level: 1, name: 'Trace' }).waitFor()
  expect(faults).toEqual([])
  await closePages(page)
})

test('reads at which stage the gate held a run back, and what it would take', async () => {
  const { page, faults } = await dashboard.open(`/traces/${held.trace_id}?span=${held.span_id}`)
  await chain(page)
    .getByRole('button', { name: /network\.block: needs approval at policy/ })
    .waitFor()
  await chain(page).getByText('What would have to change').waitFor()
  const details = page.getByRole('region', { name: 'gate network.block' })
  await details.getByRole('heading', { name: 'To pass' }).waitFor()
  await details.getByRole('heading', { name: 'Stages' }).waitFor()
  expect(await details.locator('li.bad').allTextContents()).toEqual([expect.stringContaining('needs_approval_if')])
  await details.getByText('its context then').waitFor()
  expect(faults).toEqual([])
  await closePages(page)
})

test('reads why a reflex was sure of a decision: what spoke for it, what against it, and where it was wrong', async () => {
  const fired = found((await entries('reflex-fired')).find(({ trace_id }) => trace_id === block.trace_id))
  const { page, faults } = await dashboard.open('/traces')
  // The demo has no table.
  const answers: DecisionWhy[] = []
  await page.route(/\/events\/[^/]+\/why$/, async (route) => {
    const answer = (await (await route.fetch()).json()) as DecisionWhy
    answers.push(answer)
    const of = (version: number | null) => (version === 1 ? SURE : { reasons: ['Of another version.'] })
    await route.fulfill({ json: { ...answer, reflexes: answer.reflexes.map((one) => ({ ...one, ...of(one.version) })) } })
  })
  await page.goto(`${dashboard.url}/traces/${fired.trace_id}?span=${fired.span_id}`)
  await page.getByText(SURE_REASON).waitFor()
  expect(await page.getByText('Of another version.').count()).toBe(0)
  expect(answers[0]?.reflexes.map(({ version, verdict }) => [version, verdict])).toEqual([
    [1, 'acted'],
    [2, expect.anything()],
  ])
  const spoke = page.getByRole('region', { name: 'What spoke for and against' }).getByRole('row')
  expect(await spoke.allInnerTexts().then((rows) => rows.map((row) => row.split('\t')))).toEqual([
    ['The event', '420 points for tool block', '40 points for the slow path'],
    ['text says "failed"', '300', '-20'],
    ['port >= 1024', '120', '–'],
    ['text says "session"', '–', '60'],
  ])
  expect(await page.getByRole('link', { name: 'line-7' }).getAttribute('href')).toContain(`/traces/${'b'.repeat(32)}`)
  expect(await audit(page)).toEqual([])
  expect(faults).toEqual([])
  await closePages(page)
})

const SURE_REASON = 'tool block has 380 points more than a decision that it leaves to the slow path, and needs 90.'
const SURE: Pick<DecisionWhy['reflexes'][number], 'reasons' | 'points' | 'disagreed'> = {
  reasons: [SURE_REASON],
  points: {
    best: {
      decision: 'tool block',
      points: 420,
      spoke: [
        { says: 'text says "failed"', points: 300 },
        { says: 'port >= 1024', points: 120 },
      ],
    },
    second: {
      decision: null,
      points: 40,
      spoke: [
        { says: 'text says "session"', points: 60 },
        { says: 'text says "failed"', points: -20 },
      ],
    },
    lead: 380,
    needed: 90,
  },
  disagreed: {
    at: '2026-11-22T20:00:00.000Z',
    event_id: 'line-7',
    trace_id: 'b'.repeat(32),
    how: 'audited',
    by: 'the slow path',
    agreed: false,
  },
}

test('says on the overview what reflexes avoided in 30 days, and the most that they may have missed', async () => {
  const { page, faults } = await dashboard.open('/traces')
  const names: string[] = []
  await page.route(/\/v1\/stats\/summary\?.*most_missed/, async (route) => {
    const answer = (await (await route.fetch()).json()) as Summary
    names.push(...answer.metrics.map(({ metric }) => metric))
    const totals = [12.5, 3]
    await route.fulfill({ json: { ...answer, metrics: answer.metrics.map((one, at) => ({ ...one, total: totals[at] ?? null })) } })
  })
  await page.goto(dashboard.url)
  await page.getByText('The last 30 days: reflexes avoided $12.50, and at most 3 acts (95 % sure).').waitFor()
  expect(names).toEqual(['reflexes.saved_cost_usd', 'reflexes.most_missed'])
  expect(faults).toEqual([])
  await closePages(page)
})

test('replays a trace, and asks what would have happened without a reflex', async () => {
  const { page, faults } = await dashboard.open(`/traces/${block.trace_id}`)
  await page.getByRole('button', { name: 'Replay' }).click()
  await page.getByText(/^All [\d,]+ decisions are the same\.$/).waitFor()
  await page.getByRole('button', { name: 'What if …' }).click()
  const dialog = page.getByRole('dialog', { name: 'What if' })
  await dialog.getByLabel('Change').selectOption('chain')
  const value = dialog.locator('textarea')
  await expect.poll(() => value.inputValue()).toContain(REFLEX)
  await value.fill('[')
  await dialog.getByRole('button', { name: 'Decide again' }).click()
  await dialog.getByText('The value is not JSON.').waitFor()
  await value.fill('[]')
  await dialog.getByRole('button', { name: 'Keep it, and change another' }).click()
  await dialog.getByText('Also changed: Which reflexes run').waitFor()
  expect(await audit(page)).toEqual([])
  await dialog.getByLabel('Change').selectOption('setting')
  await expect.poll(() => value.inputValue()).not.toContain('[')
  await value.fill('0.9')
  const [request] = await Promise.all([page.waitForRequest(/\/replay/), dialog.getByRole('button', { name: 'Decide again' }).click()])
  expect(request.postDataJSON()).toEqual({ mode: 'what_if', changes: { reflexes: [], settings: { tau: 0.9 } } })
  const report = page.getByRole('region', { name: 'What if' })
  await report.getByText(/decisions would change/).waitFor()
  await report.getByText(/Would not happen: .*block/).waitFor()
  await report.getByText('Recorded').first().waitFor()
  // The address brings the report back, and the dialog.
  await page.reload()
  await report.getByText(/Would not happen: .*block/).waitFor()
  await page.getByRole('button', { name: 'What if …' }).click()
  await page.waitForURL(/ask=what-if/)
  await page.reload()
  await dialog.getByLabel('Change').waitFor()
  expect(faults).toEqual([])
  await closePages(page)
})

test('decides a range of a scope again with another setting, by an address that brings the report back', async () => {
  const { page, faults } = await dashboard.open('/what-if')
  await page.getByLabel('Scope').fill(SCOPE)
  await page.getByLabel('Changes, as JSON').fill('{')
  await page.getByRole('button', { name: 'Decide again' }).click()
  await page.getByRole('alert').getByText('The changes are not JSON.').waitFor()
  await page.getByLabel('Changes, as JSON').fill('{"reflexes": []}')
  await page.getByRole('button', { name: 'Decide again' }).click()
  const report = page.getByRole('region', { name: 'Report' })
  await report
    .getByText(/would change/)
    .first()
    .waitFor()
  expect(await audit(page)).toEqual([])
  await page.reload()
  await report
    .getByText(/would change/)
    .first()
    .waitFor()
  expect(await page.getByLabel('Scope').inputValue()).toBe(SCOPE)
  expect(faults).toEqual([])
  await closePages(page)
})

test('says that a replay of a range failed when its answer ends before a report', async () => {
  const { page, faults } = await dashboard.open(`/reflexes/${REFLEX}?tab=try`)
  await page.route(/\/replay$/, (route) => route.fulfill({ contentType: 'application/x-ndjson', body: '' }))
  await page.getByLabel('Scope').fill(SCOPE)
  const decide = page.getByRole('button', { name: 'Decide again' })
  await decide.click()
  await page.getByText('The answer ended early.').waitFor()
  expect(await decide.isEnabled()).toBe(true)
  expect(faults).toEqual([])
  await closePages(page)
})

test('exports a trace as a file, which the server replays', async () => {
  const { page } = await dashboard.open(`/traces/${block.trace_id}`)
  const download = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Export' }).click()
  const file = await download
  expect(file.suggestedFilename()).toBe(`trace-${block.trace_id}.json`)
  const body = JSON.parse(await readFile(await file.path(), 'utf8')) as object
  expect(await ask(dashboard.url, '/v1/replay', { body })).toMatchObject({ trace_id: block.trace_id, equivalent: true })
  await closePages(page)
})

test('downloads the receipt of a trace, which is checked without the server', async () => {
  const { page } = await dashboard.open(`/traces/${block.trace_id}`)
  const download = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Receipt' }).click()
  const file = await download
  expect(file.suggestedFilename()).toBe(`receipt-${block.trace_id}.json`)
  expect(await reflex(['verify', await file.path()])).toMatchObject({ code: 0 })
  await closePages(page)
})

test('downloads the incident of a trace: the traces around it, with their receipts', async () => {
  const { page } = await dashboard.open(`/traces/${block.trace_id}`)
  const download = page.waitForEvent('download')
  await page.getByRole('button', { name: 'Incident' }).click()
  const file = await download
  expect(file.suggestedFilename()).toBe(`incident-${block.trace_id}.json`)
  const incident = JSON.parse(await readFile(await file.path(), 'utf8')) as { schema: string; report: { traces: number }; traces: object[] }
  expect(incident).toMatchObject({ schema: 'reflex/incident@1', alerts: expect.any(Array), dead_letters: expect.any(Array) })
  expect(incident.traces).toHaveLength(incident.report.traces)
  expect(incident.traces).toContainEqual({
    summary: expect.objectContaining({ trace_id: block.trace_id }),
    recording: expect.anything(),
    receipt: expect.any(String),
  })
  await closePages(page)
})

test('shows where each argument of a call comes from, in its trace and to whoever approves it', async () => {
  const scope = 'origins/shown'
  const code = `function reflex(context) {
    return { action_type: 'call_tool', tool: 'http.send', args: { to: context.event.content, cc: 'eve' + '@evil.example', body: String(1234 * 3) } }
  }`
  await ask(dashboard.url, '/v1/reflexes', { body: { id: 'sender', code, state: 'active' } })
  const input = { type: 'object', properties: { to: {}, cc: {}, body: {} } }
  const tool = { name: 'http.send', description: 'Sends', method: 'POST', url: 'http://127.0.0.1:9/mail', input }
  const settings = { reflexes: [{ id: 'sender' }], http_tools: [tool], allowed_hosts: ['127.0.0.1:9'] }
  await ask(dashboard.url, scopePath(scope), { method: 'PATCH', body: settings })
  const body = { type: 'ws.message', connection_id: 'ann', content: 'bob@example.com' }
  await ask(dashboard.url, `${scopePath(scope)}/events?wait=outcome`, { body })
  const { items } = await ask<{ items: Entry[] }>(dashboard.url, `${scopePath(scope)}/log?kind=effect-started`)
  const { trace_id, span_id } = found(items[0])
  const { page, faults } = await dashboard.open(`/traces/${trace_id}?scope=${encodeURIComponent(scope)}&span=${span_id}`)
  const origin = (argument: string, from: string) =>
    page
      .getByRole('listitem')
      .filter({ hasText: new RegExp(`^${argument} `) })
      .getByText(from)
  await origin('to', 'user').waitFor()
  await origin('cc', 'in doubt, model').waitFor()
  await origin('body', 'not a value that this scope was given').waitFor()

  await ask(dashboard.url, scopePath(scope), { method: 'PATCH', body: { origins: 'ask' } })
  await ask(dashboard.url, `${scopePath(scope)}/events?wait=outcome`, { body })
  await page.goto(`${dashboard.url}/approvals`)
  await page.getByRole('row', { name: 'http.send' }).click()
  await origin('to', 'user').waitFor()
  await origin('cc', 'in doubt, model').waitFor()
  expect(await audit(page)).toEqual([])
  expect(faults).toEqual([])
  await closePages(page)
})

test('shows where the arguments of all steps of a run come from, on its span, and to whoever approves it', async () => {
  const step = found((await entries('effect-started')).find(({ step: of, tool }) => of !== undefined && tool === 'open_ticket'))
  const { root } = await ask<TraceReport>(dashboard.url, `/v1/traces/${step.trace_id}?scope=${encodeURIComponent(SCOPE)}`)
  const runs = (span: Span): Span[] => [...(span.kind === 'run' ? [span] : []), ...span.children.flatMap(runs)]
  const run = found(runs(root).find(({ name }) => name.includes('incident.open')))
  const { page, faults } = await dashboard.open(`/traces/${step.trace_id}?scope=${encodeURIComponent(SCOPE)}&span=${run.span_id}`)
  for (const call of run.children.keys()) await page.getByRole('heading', { name: `Where the arguments of ${call + 1}, ` }).waitFor()
  expect(await page.getByRole('heading', { name: 'Where the arguments of ' }).count()).toBe(run.children.length)

  await page.goto(`${dashboard.url}/approvals`)
  await page.getByRole('row', { name: 'network.block' }).getByText('network.block', { exact: true }).click()
  await page.getByRole('heading', { name: 'Where the arguments of 1, ' }).waitFor()
  expect(await audit(page)).toEqual([])
  expect(faults).toEqual([])
  await closePages(page)
})

test('offers a rule that follows from what people approved, which a person accepts', async () => {
  const scope = 'origins/rules'
  const code = `function reflex(context) { return { action_type: 'call_tool', tool: 'http.send', args: { to: context.event.content } } }`
  await ask(dashboard.url, '/v1/reflexes', { body: { id: 'forwarder', code, state: 'active' } })
  const tool = { name: 'http.send', description: 'Sends', method: 'POST', url: 'http://127.0.0.1:9/mail', body: { to: '{{to}}' } }
  const origins = { origins: 'ask', trusted_senders: ['nobody'] }
  const settings = { ...origins, reflexes: [{ id: 'forwarder' }], http_tools: [tool], allowed_hosts: ['127.0.0.1:9'] }
  await ask(dashboard.url, scopePath(scope), { method: 'PATCH', body: settings })
  for (const name of ['ann', 'bob', 'cy']) {
    const body = { type: 'ws.message', connection_id: name, content: `${name}@example.com` }
    await ask(dashboard.url, `${scopePath(scope)}/events?wait=outcome`, { body })
  }
  const asked = await eventually(async () => {
    const { items } = await ask<{ items: { id: string }[] }>(
      dashboard.url,
      `/v1/approvals?scope=${encodeURIComponent(scope)}&status=pending`,
    )
    return items.length === 3 && items
  }, 'a person is asked three times')
  for (const { id } of asked) await ask(dashboard.url, `/v1/approvals/${id}/approve`, { method: 'POST' })
  const { page, faults } = await dashboard.open('/approvals?status=approved')
  await page.getByRole('region', { name: 'Approvals' }).getByRole('row', { name: scope }).first().click()
  await page.getByText('Approved 3 times: ').waitFor()
  await page.getByRole('button', { name: 'Accept …' }).click()
  expect(await audit(page)).toEqual([])
  await page.getByRole('button', { name: 'Accept', exact: true }).click()
  await page.getByText('The rule is in trusted_text.').waitFor()
  await page.getByText('Approved 3 times: ').waitFor({ state: 'detached' })
  const { settings: changed } = await ask<{ settings: object }>(dashboard.url, scopePath(scope))
  expect(changed).toMatchObject({ trusted_text: [{ in: 'ws.message', what: ['to'], tools: ['http.send'] }] })
  expect(faults).toEqual([])
  await closePages(page)
})

test('walks a trace of a thousand spans by the keyboard, of which only those in view are in the document', async () => {
  const spans = 1000
  const { page, faults } = await dashboard.open('/reflexes')
  await page.route(/\/v1\/traces\/[0-9a-f]+$/, (route) => route.fulfill({ json: longTrace(spans) }))
  await page.goto(`${dashboard.url}/traces/${'a'.repeat(32)}`)
  const tree = page.getByRole('tree', { name: 'Spans' })
  await tree.getByRole('treeitem').first().waitFor()
  expect(await tree.getByRole('treeitem').count()).toBeLessThan(80)
  await tree.focus()
  await page.keyboard.press('End')
  await tree.locator('[aria-selected=true]', { hasText: `chat ${spans}` }).waitFor()
  expect(page.url()).toContain(`span=${spanId(spans)}`)
  await page.keyboard.press('Home')
  await page.keyboard.press('ArrowLeft')
  await expect.poll(() => tree.getByRole('treeitem').count()).toBe(1)
  expect(faults).toEqual([])
  await closePages(page)
})

const spanId = (number: number): string => number.toString(16).padStart(16, '0')

function longTrace(spans: number): TraceReport {
  const began = Date.parse('2026-11-22T20:00:00Z')
  const span = (number: number, name: string, kind: Span['kind'], children: Span[] = []): Span => ({
    span_id: spanId(number),
    parent_id: null,
    name,
    kind,
    status: 'ok',
    started_at: new Date(began + number).toISOString(),
    duration_ms: 5,
    attributes: { 'reflex.scope': SCOPE },
    children,
  })
  const children = Array.from({ length: spans }, (_, index) => span(index + 1, `chat ${index + 1}`, 'model'))
  const usage = { input_tokens: 0, output_tokens: 0, cost_usd: null, model_calls: spans }
  const times = { status: 'ok', started_at: new Date(began).toISOString(), ended_at: null, duration_ms: spans } as const
  return { trace_id: 'a'.repeat(32), scopes: [SCOPE], usage, truncated: false, ...times, root: span(0, 'turn', 'turn', children) }
}

test('compares two versions of a reflex, promotes the newer one with a reason, and demotes it again', async () => {
  const { page, faults } = await dashboard.open(`/reflexes/${REFLEX}?tab=code`)
  await page.locator('ins', { hasText: '// The second version.' }).waitFor()
  const versions = page.getByRole('region', { name: 'States of the versions' })
  const newest = versions.getByRole('row').nth(1)
  await newest.getByRole('button', { name: 'Promote' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Reason').fill('it was compared for a day')
  await dialog.getByRole('button', { name: 'Promote' }).click()
  await newest.getByText('it was compared for a day').waitFor()
  await newest.getByText('active').waitFor()
  await newest.getByRole('button', { name: 'Demote' }).click()
  await dialog.getByRole('button', { name: 'Demote' }).click()
  await newest.getByText('shadow').waitFor()
  expect(faults).toEqual([])
  await closePages(page)
})

test('evaluates a reflex on recordings', async () => {
  const { page, faults } = await dashboard.open(`/reflexes/${REFLEX}?tab=try`)
  await page.getByLabel('Scope').fill(SCOPE)
  await page.getByRole('button', { name: 'Evaluate' }).click()
  await page.getByText(/of [\d,]+, [\d,]+ not comparable/).waitFor()
  expect(await audit(page)).toEqual([])
  expect(faults).toEqual([])
  await closePages(page)
})

test('reads a skill, tests it, and sees in a dry run which stage refuses', async () => {
  const { page, faults } = await dashboard.open('/skills/network.block')
  await page.getByText('is_private_network(network)').waitFor()
  await page.getByRole('link', { name: 'Tests' }).click()
  await page.getByRole('button', { name: 'Test it' }).click()
  await page.getByText('Mutations').waitFor()
  expect(await audit(page)).toEqual([])
  await page.getByRole('link', { name: 'Gate and runs' }).click()
  await page.getByRole('article').first().getByText('needs approval').waitFor()
  expect(await audit(page)).toEqual([])
  await page.getByRole('link', { name: 'Propose' }).click()
  await page.getByLabel('Scope').fill(SCOPE)
  await page.getByLabel(/^network/).fill('192.168.1.0/24')
  await page.getByLabel(/^reason/).fill('attacks')
  await page.getByLabel(/^Why/).fill('networks that attack')
  await page.getByRole('button', { name: 'Dry run' }).click()
  await page.getByText('Nothing ran: this is what the gate decides.').waitFor()
  expect(await audit(page)).toEqual([])
  await page.getByRole('listitem').filter({ hasText: 'policy:' }).getByText('failed').waitFor()
  expect(faults).toEqual([])
  await closePages(page)
})

test('says on the page of a skill what its author hardly meant', async () => {
  const { manifest } = await ask<{ manifest: { policy: object } }>(dashboard.url, '/v1/skills/network.block')
  const policy = { ...manifest.policy, deny_if: ['inputs.reason == "a" && inputs.reason == "b"'] }
  const path = 'policy.deny_if[0]'
  const registered = await ask(dashboard.url, '/v1/skills', { body: { ...manifest, id: 'network.doubtful', policy } })
  expect(registered).toMatchObject({ findings: [{ path }] })
  const { page, faults } = await dashboard.open('/skills/network.doubtful')
  await page.getByText(`${path}: inputs.reason == "a" && inputs.reason == "b" can never hold`).waitFor()
  expect(await audit(page)).toEqual([])
  expect(faults).toEqual([])
  await closePages(page)
})

test('starts a run of learning, and reads what it answered', async () => {
  const { page, faults } = await dashboard.open('/learning')
  await page.getByText('No scope has learned yet.').waitFor()
  await page.getByLabel('Scope').first().fill(SCOPE)
  await page.getByRole('button', { name: 'Learn' }).click()
  await page.getByRole('heading', { level: 1, name: 'Run of learning' }).waitFor()
  await page.locator('.status', { hasText: 'done' }).waitFor()
  await page
    .getByRole('status')
    .getByText(/learned from|nothing to learn from/)
    .waitFor()
  await page.goto(`${dashboard.url}/learning?scope=${encodeURIComponent(SCOPE)}`)
  await page
    .getByRole('region', { name: `Cost curve of ${SCOPE}` })
    .getByText(/model calls for each 100 events/)
    .first()
    .waitFor()
  expect(await audit(page)).toEqual([])
  expect(faults).toEqual([])
  await closePages(page)
})

test('rejects what a run has learned, with a reason, after a look at its evidence', async () => {
  const { page, faults } = await dashboard.open('/learning')
  await page.route(/\/v1\/learn\/runs\/a-run$/, (route) =>
    route.fulfill({ json: learnedRun({ trace_id: block.trace_id, scope: SCOPE, reflex: REFLEX }) }),
  )
  await page.goto(`${dashboard.url}/learning?run=a-run`)
  const candidate = page.getByRole('article', { name: `reflex ${REFLEX}` })
  await candidate.getByText('39 (97.5 %, at least 93 %)').waitFor()
  expect(await audit(page)).toEqual([])
  expect(await candidate.getByRole('link', { name: 'entry 7' }).getAttribute('href')).toBe(`/traces/${block.trace_id}`)
  await candidate.getByRole('button', { name: 'Reject' }).click()
  const dialog = page.getByRole('dialog')
  await dialog.getByLabel('Reason').fill('it blocks too early')
  await dialog.getByRole('button', { name: 'Reject' }).click()
  await page.getByText(`${REFLEX}@2 is retired now.`).waitFor()
  const { versions } = await ask<{ versions: object[] }>(dashboard.url, `/v1/reflexes/${REFLEX}`)
  expect(versions[0]).toMatchObject({ version: 2, state: 'retired', state_reason: 'it blocks too early' })
  expect(faults).toEqual([])
  await closePages(page)
})

test('reads how sure a decision model was, and why it left an event to a turn', async () => {
  const { page, faults } = await dashboard.open('/decisions')
  await page.getByRole('link', { name: 'triage' }).waitFor()
  await page.getByLabel('Another scope').fill(TRIAGE)
  const row = page.getByRole('region', { name: 'Its decisions' }).getByRole('row').nth(1)
  await row.getByText(/^the probability is below 1$|^no action is set for/).waitFor()
  await row.getByRole('link', { name: 'Trace' }).click()
  await chain(page)
    .getByRole('button', { name: /^decide / })
    .waitFor()
  expect(faults).toEqual([])
  await closePages(page)
})

test('shows a viewer everything and names the role that a change needs', async () => {
  const { key } = await ask<{ key: string }>(dashboard.url, '/v1/keys', { body: { name: 'watcher', roles: ['viewer'], scopes: ['ssh/*'] } })
  const { page } = await dashboard.open(`/reflexes/${REFLEX}?tab=code`, { key })
  await page.getByText('To change a state needs the role operator').waitFor()
  expect(await page.getByRole('button', { name: 'Promote' }).count()).toBe(0)
  await closePages(page)
})

import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import type { ReflexConfig } from '../../../src/standalone/config.ts'
import { hashJson } from '../../../src/base/json.ts'
import { fileStorage } from '../../../src/standalone/node/index.ts'
import { saveNote, world } from './fixtures.ts'

const folder = mkdtempSync(path.join(tmpdir(), 'reflex-'))
let files = 0
const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS

type Version = { id: string; version: string; manifest: object | null; revision: number; hash?: string }

/** A control plane with these versions, whose answers may be replaced. */
function controlPlane(...versions: Version[]) {
  const asked: { path: string; body: unknown }[] = []
  const state = { versions, fault: null as (() => Response) | null, verdict: 'allow' }
  const send: typeof fetch = async (input, init) => {
    const request = new Request(input, init)
    const url = new URL(request.url)
    asked.push({ path: url.pathname, body: request.method === 'POST' ? await request.json() : null })
    if (state.fault) return state.fault()
    if (url.pathname === '/v1/policy/check') return Response.json({ verdict: state.verdict, reason: 'as scripted' })
    if (url.pathname === '/v1/telemetry') return Response.json({ accepted: 1, duplicate: false })
    const since = Number(url.searchParams.get('since'))
    const revision = Math.max(0, ...state.versions.map((one) => one.revision))
    const changed = revision < since ? [] : state.versions.filter((one) => one.revision > since)
    const items = changed.map(async ({ revision: _revision, ...one }) => ({ hash: await hashJson(one.manifest), ...one }))
    return Response.json({ items: await Promise.all(items), revision, more: false })
  }
  const paths = () => asked.splice(0).map((one) => one.path)
  return { state, asked, paths, config: { url: 'https://control.example.com', key: 'key-of-the-client', fetch: send } }
}

const note: Version = { id: 'note.save', version: '1.0.0', manifest: saveNote, revision: 1 }

type Limits = Pick<NonNullable<ReflexConfig['control_plane']>, 'tools' | 'approval'> & Pick<ReflexConfig, 'tool_policies' | 'policy_mode'>

/** A process with that control plane, over one file. Its skills need no approval by default. */
function processOver(
  plane: ReturnType<typeof controlPlane>,
  file = path.join(folder, `${++files}.sqlite`),
  { tool_policies = {}, policy_mode = 'enforce', ...limits }: Limits = { approval: 'never' },
) {
  const clock = { now: Date.parse('2026-11-21T05:30:00Z') }
  const here = world({
    skills: [],
    compat: { env: ['prod'] },
    control_plane: { ...plane.config, ...limits },
    tool_policies,
    policy_mode,
    storage: fileStorage(file),
    now: () => (clock.now += 1),
    newId: () => crypto.randomUUID(),
  })
  const propose = () =>
    here.reflex
      .session()
      .propose({ skill_id: 'note.save', inputs: { title: 'milk' }, why: '' }, { from: 'model', roles: ['writer'], text: 'a note' })
  const kinds = () => here.reflex.log.entries().flatMap(({ kind }) => (kind.startsWith('skills-') ? [kind] : []))
  return { ...here, file, clock, propose, kinds }
}

describe('a process with a control plane', () => {
  test('takes its skills, asks its policy once a minute, and refuses what it refuses', async () => {
    const plane = controlPlane(note)
    const here = processOver(plane)
    expect(await here.reflex.sync()).toBe(true)
    expect(await here.propose()).toMatchObject({ status: 'ok' })
    expect(await here.propose()).toMatchObject({ status: 'ok' })
    const questions = plane.asked.filter((one) => one.path === '/v1/policy/check').map(({ body }) => body)
    expect(questions).toEqual([{ skill_id: 'note.save', version: '1.0.0', project: 'acme/notes', env: ['prod'], roles: ['writer'] }])
    plane.state.verdict = 'needs_promotion'
    here.clock.now += 2 * MINUTE_MS
    expect(await here.propose()).toMatchObject({ status: 'refused', decision: { verdict: 'needs_promotion' } })
  })

  test('deprecates what is withdrawn, or missing after a restore, and takes it again', async () => {
    const plane = controlPlane(note)
    const here = processOver(plane)
    const stateNow = async () => {
      await here.reflex.sync()
      return here.reflex.registry.find('note.save')?.state
    }
    expect(await stateNow()).toBe('active')
    plane.state.versions = [{ ...note, manifest: null, revision: 5 }]
    expect(await stateNow()).toBe('deprecated')
    plane.state.versions = [{ ...note, revision: 6 }]
    expect(await stateNow()).toBe('active')
    plane.state.versions = [{ ...note, id: 'note.other', manifest: { ...saveNote, id: 'note.other' }, revision: 2 }]
    expect(await stateNow()).toBe('deprecated')
    expect(here.reflex.registry.find('note.other')).toMatchObject({ state: 'active' })
  })

  test.each<[string, Partial<Version>]>([
    ['another hash', { hash: '0'.repeat(64) }],
    ['a manifest of another id', { id: 'note.other' }],
    ['an invalid manifest', { manifest: { ...saveNote, plan: 'none' } }],
  ])('does not take a version with %s', async (_name, changes) => {
    const here = processOver(controlPlane({ ...note, ...changes }))
    expect(await here.reflex.sync()).toBe(true)
    expect(here.reflex.registry.list()).toEqual([])
  })

  test('does not replace a skill of its own', async () => {
    const here = processOver(controlPlane({ ...note, version: '2.0.0', manifest: { ...saveNote, version: '2.0.0' } }))
    here.reflex.registry.register(saveNote)
    await here.reflex.sync()
    expect(here.reflex.registry.list().map(({ manifest }) => manifest.version)).toEqual(['1.0.0'])
  })

  test.each<[string, () => Response]>([
    ['does not answer', () => raise('connect ECONNREFUSED')],
    ['answers with an error', () => new Response('no', { status: 500 })],
    ['answers with garbage', () => Response.json({ verdict: 'maybe', items: 'none' })],
  ])('continues with skills and verdicts on disk while it %s, and logs that once', async (_name, fault) => {
    const plane = controlPlane(note)
    const before = processOver(plane)
    await before.reflex.sync()
    await before.propose()
    before.reflex.close()
    plane.state.fault = fault
    const here = processOver(plane, before.file)
    here.clock.now += 10 * MINUTE_MS
    expect(await here.reflex.sync()).toBe(false)
    expect(await here.reflex.sync()).toBe(false)
    expect(await here.propose()).toMatchObject({ status: 'ok' })
    expect(here.kinds()).toEqual(['skills-degraded', 'skills-degraded'])
    plane.state.fault = null
    here.clock.now += 10 * MINUTE_MS
    expect(await here.reflex.sync()).toBe(true)
    expect(await here.propose()).toMatchObject({ status: 'ok' })
    expect(here.kinds().slice(2)).toEqual(['skills-restored', 'skills-restored'])
  })

  test('does not run what its policy was never asked about while it is away', async () => {
    const plane = controlPlane(note)
    const here = processOver(plane)
    await here.reflex.sync()
    plane.state.fault = () => raise('down')
    expect(await here.propose()).toMatchObject({ status: 'refused', reason: expect.stringContaining('no verdict of it is cached') })
    expect(here.saved).toEqual([])
  })

  test('reports each ended hour once, also by the next process', async () => {
    const plane = controlPlane(note)
    const before = processOver(plane)
    await before.reflex.sync()
    await before.propose()
    await before.propose()
    before.reflex.close()
    const here = processOver(plane, before.file)
    here.clock.now += HOUR_MS
    plane.asked.splice(0)
    await here.reflex.sync()
    await here.reflex.sync()
    expect(plane.asked.filter((one) => one.path === '/v1/telemetry').map(({ body }) => body)).toEqual([
      {
        client: expect.any(String),
        window: { since: '2026-11-21T05:00:00.000Z', until: '2026-11-21T06:00:00.000Z' },
        skills: [{ skill_id: 'note.save', calls: 2, success: 2, delta_cost: null, delta_p95: null }],
      },
    ])
  })

  test('does not let a turn wait for its skills', async () => {
    const plane = controlPlane(note)
    plane.config.fetch = () => new Promise(() => {})
    const here = processOver(plane)
    expect(here.reflex.session().bulletin('a note')).toBe('')
  })
})

describe('what a skill of a control plane may do in a process', () => {
  const limited = async (limits: Limits, version: Version = note) => {
    const plane = controlPlane(version)
    const here = processOver(plane, undefined, limits)
    await here.reflex.sync()
    return { ...here, plane }
  }

  test.each<Limits>([{}, { policy_mode: 'observe' }, { approval: 'always', tool_policies: { 'notes.save': { repeatable: true } } }])(
    'waits for a person with %j, and runs once one approved',
    async (limits) => {
      const { propose, reflex, saved } = await limited(limits)
      const { status, approval_id } = await propose()
      expect([status, saved]).toEqual(['needs_approval', []])
      expect(await reflex.approvals.approve(approval_id ?? '')).toMatchObject({ status: 'ok' })
      expect(saved).toEqual(['milk'])
    },
  )

  test.each<Limits>([{ tool_policies: { 'notes.save': { repeatable: true } } }, { approval: 'never' }])(
    'runs at once with %j',
    async (limits) => {
      expect(await (await limited(limits)).propose()).toMatchObject({ status: 'ok' })
    },
  )

  test('is refused where it uses a tool that the process does not list', async () => {
    const { propose, plane } = await limited({ approval: 'never', tools: ['mail.*'] })
    expect(await propose()).toMatchObject({ status: 'refused', reason: expect.stringContaining('control_plane.tools') })
    expect(plane.paths()).not.toContain('/v1/policy/check')
    expect(await (await limited({ approval: 'never', tools: ['notes.*'] })).propose()).toMatchObject({ status: 'ok' })
  })

  test('waits as well where the synchronization that took it broke off, and in the next process', async () => {
    const plane = controlPlane(note)
    const send = plane.config.fetch
    // The first page is taken, the second is out of reach.
    plane.config.fetch = async (input, init) => {
      const answer = await send(input, init)
      if (!new URL(new Request(input).url).pathname.endsWith('/skills/sync')) return answer
      if (plane.asked.length > 1) throw new Error('down')
      return Response.json({ ...(await answer.json<object>()), more: true })
    }
    const before = processOver(plane, undefined, {})
    expect(await before.reflex.sync()).toBe(false)
    expect(before.reflex.registry.find('note.save')).toMatchObject({ state: 'active' })
    expect(await before.propose()).toMatchObject({ status: 'needs_approval' })
    before.reflex.close()
    expect(await processOver(plane, before.file, {}).propose()).toMatchObject({ status: 'needs_approval' })
  })

  test('waits for nobody where the skill is one of the process', async () => {
    const { reflex, propose } = await limited({}, { ...note, id: 'note.other', manifest: { ...saveNote, id: 'note.other' } })
    reflex.registry.register(saveNote)
    expect(await propose()).toMatchObject({ status: 'ok' })
  })
})

function raise(message: string): never {
  throw new Error(message)
}

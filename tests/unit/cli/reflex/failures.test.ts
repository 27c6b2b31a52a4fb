import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { afterEach, expect, test, vi } from 'vitest'
import { reflexHere } from '../../../e2e/command-line.ts'

const variables = { REFLEX_URL: 'https://reflex.test', REFLEX_KEY: 'key-of-the-test', NO_COLOR: '1' }
afterEach(() => {
  vi.unstubAllGlobals()
  vi.restoreAllMocks()
})

/** A command whose request gets this answer. */
function answered(args: string, body: object, status = 200) {
  vi.stubGlobal('fetch', async () => Response.json(body, { status }))
  return reflexHere(args.split(' '), variables)
}

test('a failure of several lines keeps its lines, without what steers the terminal', async () => {
  const problem = { title: 'Invalid request', status: 400, detail: 'division by zero\n  > 1 | 1 / 0\u001b[31m\n          ^' }
  expect(await answered('scope list', problem, 400)).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('answered 400: division by zero\n  > 1 | 1 / 0?[31m\n          ^\n'),
  })
})

test('statistics of all time say so, and not the year in which clocks begin', async () => {
  const none = { metric: 'model.cost_usd', unit: 'usd', bucket: 'all', since: '1970-01-01T00:00:00.000Z', series: [], more: false }
  const { stdout } = await answered('stats model.cost_usd --bucket all', { ...none, until: '2026-11-22T05:00:00.000Z' })
  expect(stdout).toBe('since the beginning\nOF  MODEL.COST_USD  TREND\nNothing was counted yet.\n')
})

test('the steps after init are commands for its folder, whatever its name', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'reflex-init-'))
  const printed = vi.spyOn(console, 'log').mockReturnValue()
  await reflexHere(['init', join(folder, "it's new")], variables)
  expect(printed).toHaveBeenCalledWith(expect.stringContaining(`cd '${folder}/it'\\''s new'\n`))
})

test('init prints one JSON document with --json', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'reflex-init-'))
  const printed = vi.spyOn(console, 'log').mockReturnValue()
  await reflexHere(['init', join(folder, 'new'), '--json'], variables)
  expect(JSON.parse(String(printed.mock.calls[0]?.[0]))).toMatchObject({ folder: join(folder, 'new'), template: 'chat' })
})

test('init with a tarball that does not exist is wrong usage, and makes nothing', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'reflex-init-'))
  const made = await reflexHere(['init', join(folder, 'new'), '--package', join(folder, 'none.tgz')], variables)
  expect(made).toMatchObject({ code: 2, stderr: expect.stringContaining(`There is no file ${folder}/none.tgz.`) })
  expect(readdirSync(folder)).toEqual([])
})

test('init writes the whole path of a tarball, since npm reads it from the folder of the project', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'reflex-init-'))
  vi.spyOn(console, 'log').mockReturnValue()
  writeFileSync(join(folder, 'some.tgz'), '')
  await reflexHere(['init', join(folder, 'new'), '--package', relative('.', join(folder, 'some.tgz'))], variables)
  expect(readFileSync(join(folder, 'new/package.json'), 'utf8')).toContain(`"reflex-agents": "${folder}/some.tgz"`)
})

test('a metric that does not exist is wrong usage', async () => {
  expect(await reflexHere(['stats', 'nope'], variables)).toMatchObject({
    code: 2,
    stderr: 'reflex: There is no metric nope: the nearest is turns.\nreflex stats --help lists the metrics.\n',
  })
})

test('a setting that is reset and has no default is shown as not set', async () => {
  const { code, stdout, stderr } = await answered('scope set shop/desk budget=null max_attempts=null', { settings: { max_attempts: 3 } })
  expect({ code, stdout, stderr }).toEqual({ code: 0, stdout: 'budget        not set\nmax_attempts  3\n', stderr: '' })
})

test.each([[], ['--json']])(
  'a scope that never had an event is an error, with the names like it, and no state is shown %s',
  async (...json) => {
    const names = ['shop/berlin', 'shop/bern', 'chat/me']
    const page = { items: names.map((scope) => ({ scope })), next_cursor: null }
    vi.stubGlobal('fetch', async (address: string) =>
      Response.json(address.includes('/v1/scopes?') ? page : { scope: 'shop/berlim', last_seq: 0 }),
    )
    const { code, stdout, stderr } = await reflexHere(['scope', 'show', 'shop/berlim', ...json], variables)
    expect({ code, stdout, stderr }).toEqual({
      code: 1,
      stdout: '',
      stderr: 'reflex: There is no scope shop/berlim: it never had an event or a setting.\nDid you mean shop/berlin, shop/bern?\n',
    })
  },
)

test('a scope that never had an event is an error, though the names like it cannot be listed', async () => {
  const away = { type: 'urn:reflex:problem:unavailable', title: 'Unavailable', status: 400, detail: 'D1 is away' }
  vi.stubGlobal('fetch', async (address: string) =>
    address.includes('/v1/scopes?') ? Response.json(away, { status: 400 }) : Response.json({ scope: 'shop/berlim', last_seq: 0 }),
  )
  const { code, stdout, stderr } = await reflexHere(['scope', 'show', 'shop/berlim'], variables)
  expect({ code, stdout, stderr }).toEqual({
    code: 1,
    stdout: '',
    stderr: 'reflex: There is no scope shop/berlim: it never had an event or a setting.\n',
  })
})

test('a server that does not answer is named with what to do about it', async () => {
  vi.stubGlobal('fetch', async () => Promise.reject(new TypeError('fetch failed')))
  const { code, stderr } = await reflexHere(['scope', 'list'], variables)
  expect({ code, stderr }).toMatchObject({ code: 1, stderr: expect.stringContaining('reflex doctor') })
})

test.each([
  ['scope list', { closed: true }],
  ['scope list', '<!doctype html>'],
  ['doctor', { closed: true }],
  ['login --key a-key', { closed: true }],
  ['scope tail shop/desk', { closed: true }],
  ['events replay', '<!doctype html>'],
])('%s says that what answered is not Reflex', async (args, body) => {
  vi.stubGlobal('fetch', async () =>
    typeof body === 'string' ? new Response(body, { headers: { 'content-type': 'text/html' } }) : Response.json(body),
  )
  const { code, stdout, stderr } = await reflexHere(args.split(' '), variables)
  expect({ code, told: stdout + stderr }).toEqual({ code: 1, told: expect.stringContaining('not by the API of Reflex') })
})

test.each(['events replay', 'trace receipt abc'])('%s names a server that does not answer', async (args) => {
  vi.stubGlobal('fetch', async () => Promise.reject(new TypeError('fetch failed')))
  expect(await reflexHere(args.split(' '), variables)).toMatchObject({ code: 1, stderr: expect.stringContaining('reflex doctor') })
})

test.each(['skills', 'reflexes'])('learn %s takes a file: where it gets a scope, it names what learns from one', async (what) => {
  expect(await reflexHere(['learn', what, 'shop/berlin'], variables)).toMatchObject({
    code: 2,
    stderr: 'reflex: There is no file shop/berlin.\nTo learn from a scope: reflex learn snapshot SCOPE\n',
  })
})

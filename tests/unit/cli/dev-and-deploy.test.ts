import { firstEvent } from '../../../cli/lib/first-event.ts'
import { mkdtempSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { beforeEach, describe, expect, test } from 'vitest'
import { databaseId, migratedDatabases } from '../../../cli/deploy/database-id.ts'
import { deployedUrl } from '../../../cli/deploy/deployed-url.ts'
import { adminKey } from '../../../cli/dev/admin-key.ts'
import { notices, welcome } from '../../../cli/dev/welcome.ts'
import { causeIn, missingClasses } from '../../../cli/lib/local-server.ts'
import { plainPaint } from '../../../cli/lib/paint.ts'
import { projectFiles } from '../../../cli/reflex/project/template.ts'

test('what a Worker threw while it started is named by itself, without what wrangler wrote around it', () => {
  const log = '✘ [ERROR] service core:user:a: Uncaught Error: Agent "a" has no trigger.\n\n    at null.<anonymous> (index.js:1:9)\n'
  const stderr = '  {"message":"service core:user:a: Uncaught Error: Agent \\"a\\" has no trigger.\\n  at index.js:1:9"}\n'
  expect(causeIn(`${stderr}${log}▲ [WARNING] A class is not exported.\n${stderr}`)).toBe(
    '\nThe Worker threw while it started: Agent "a" has no trigger.',
  )
  expect(causeIn('✘ [ERROR] service core:user:a: Uncaught TypeError: x is not a function\n')).toContain('TypeError: x is not')
  expect(causeIn('✘ [ERROR] Build failed with 1 error:\n')).toBe('')
})

test('the start of the local server names a variable that nothing reads, with the one that was meant', () => {
  expect(notices([{ name: 'REFLEX_EVENT_BYTES', nearest: 'REFLEX_EVENTS_BYTES' }], plainPaint)).toEqual([
    'Warning: REFLEX_EVENT_BYTES is set, and nothing of Reflex reads it: the nearest name is REFLEX_EVENTS_BYTES.',
  ])
})

describe('the development server’s key', () => {
  let repository = ''
  beforeEach(() => (repository = mkdtempSync(path.join(tmpdir(), 'reflex-key-'))))
  const folders = () => ({ project: repository, state: path.join(repository, 'state') })

  test('is that of .dev.vars', () => {
    writeFileSync(path.join(repository, '.dev.vars'), '# mine\nREFLEX_ADMIN_KEY="a key"\nREFLEX_MODEL=offline\n')
    expect(adminKey(folders())).toEqual({ value: 'a key', own: false })
  })

  test('else is made once for the state, for its owner only', () => {
    writeFileSync(path.join(repository, '.dev.vars'), 'REFLEX_ADMIN_KEY=\n')
    const { value, own } = adminKey(folders())
    expect(value).toMatch(/^dev-[0-9a-f]{32}$/)
    expect(own).toBe(true)
    expect(adminKey(folders())).toEqual({ value, own: true })
    expect(statSync(path.join(repository, 'state/admin-key')).mode & 0o777).toBe(0o600)
  })

  test.each([
    ['dev-12ab', 'KEY=dev-12ab'],
    ["it's $mine", String.raw`KEY='it'\''s $mine'`],
  ])('%j is printed so that a shell takes it', (key, line) => {
    expect(
      welcome({
        project: repository,
        url: 'http://127.0.0.1:1',
        key,
        own_key: true,
        state: '.reflex',
        model: 'offline',
        paint: plainPaint,
      }),
    ).toContain(line)
  })
})

test.each(['chat', 'inbox', 'guard', 'api', 'partitions'])('the first event of a project %s is that of its form', (template) => {
  const project = path.join('templates', template)
  const { scope, event, fields } = JSON.parse(readFileSync(path.join(project, 'src/try.json'), 'utf8'))
  const [address, body] = firstEvent(project, '$URL')
  expect(address).toContain(`$URL/v1/scopes/${encodeURIComponent(scope)}/events?wait=outcome`)
  expect(JSON.parse(/-d '(.*)'$/.exec(body ?? '')?.[1] ?? '')).toEqual({
    ...event,
    ...Object.fromEntries(fields.map((field: { name: string; value: string }) => [field.name, field.value])),
  })
})

describe('deploying', () => {
  test('needs a database_id other than zeros', () => {
    expect(databaseId('database_id = "00000000-0000-0000-0000-000000000000"')).toBeNull()
    expect(databaseId('database_name = "x"\n# database_id = "5f3c"\n')).toBeNull()
    expect(databaseId('[[d1_databases]]\n  database_id = "5f3c0b9e-0000-4000-8000-000000000000"\n')).toBe(
      '5f3c0b9e-0000-4000-8000-000000000000',
    )
  })

  test('applies the migrations to each database of packed events, too', () => {
    const more = '[[d1_databases]]\nbinding = "EVENTS_DB_2"\n# binding = "EVENTS_DB_3"\n[[r2_buckets]]\nbinding = "ARCHIVE"\n'
    expect(migratedDatabases(`${readFileSync('wrangler.toml', 'utf8')}\n${more}`)).toEqual(['DB', 'EVENTS_DB_2'])
  })

  test('a project names the migrations of the package, also for a database that is commented out', () => {
    const wrangler = readFileSync('wrangler.toml', 'utf8')
    const files = projectFiles({ name: 'mine', template: 'chat', spec: '1.0.0', folder: 'templates', wrangler, versions: {} })
    const folders = Array.from((files['wrangler.toml'] ?? '').matchAll(/migrations_dir = "(.*)"/g), ([, folder]) => folder)
    expect(new Set(folders)).toEqual(new Set(['node_modules/reflex-agents/migrations']))
  })

  test('this repository holds the placeholder', () => {
    expect(databaseId(readFileSync('wrangler.toml', 'utf8'))).toBeNull()
  })

  test('finds the URL in what wrangler wrote', () => {
    const lines = [{ type: 'wrangler-session' }, { type: 'deploy', targets: ['schedule: * * * * *', 'https://reflex.me.workers.dev'] }]
    expect(deployedUrl(`${lines.map((line) => JSON.stringify(line)).join('\n')}\n`)).toBe('https://reflex.me.workers.dev')
    expect(deployedUrl('')).toBeNull()
  })
})

test('a class that wrangler.toml names and the Worker does not export ends the start, by its name', () => {
  const log =
    '✘ [ERROR] Your Worker depends on the following Durable Objects, which are not exported in your entrypoint file: Lerner.\n\n  You should export these objects'
  expect(missingClasses(log)).toBe('a class_name in wrangler.toml is none of the classes that the entry file exports: Lerner')
  expect(missingClasses('Ready on http://127.0.0.1:8787')).toBeNull()
})

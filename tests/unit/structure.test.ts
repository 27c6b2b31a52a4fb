import { globSync, readdirSync, readFileSync } from 'node:fs'
import path from 'node:path'
import { describe, expect, test } from 'vitest'
import { SEEDS } from '../support/property.ts'
import { mediansOf, namesakesIn, takingTooMuch } from '../support/source-rules.ts'
import { sourcesIn } from '../support/syntax.ts'

/**
 * From top to bottom: a file imports from its own room or from rooms on lower floors. A folder of a
 * feature that `STOREYS` names stands in a room of the house.
 */
const FLOORS = [
  ['index.ts', 'package.ts'],
  ['worker.ts'],
  ['features/index.ts'],
  ['feature.ts'],
  ['http', 'engine', 'standalone'],
  ['features/market', 'features/control-plane', 'features/receipts'],
  ['features/learning'],
  ['features/replay'],
  ['artifacts'],
  ['skills', 'agent', 'features/control-plane/client'],
  ['tools', 'events', 'features/market/ledger'],
  ['traces'],
  ['store', 'reflexes', 'expressions', 'env.ts'],
  ['evidence'],
  ['kernel'],
  ['contract', 'models'],
  ['base'],
  ['core'],
]
/** Folders and files of a feature, with their room. `scope`: what runs in the object of a scope. */
const STOREYS: Readonly<Record<string, string>> = {
  contract: 'contract',
  operations: 'contract',
  resources: 'contract',
  page: 'contract',
  store: 'store',
  events: 'events',
  scope: 'engine',
  http: 'http',
  agent: 'agent',
  models: 'models',
}
function roomOf(file: string): string {
  const [first = '', feature = '', last = ''] = file.split('/')
  if (first !== 'features') return first
  // The declarations of the features, and their list.
  if (/^features\/(?:[\w-]+\/)?index\.ts$/.test(file)) return 'features/index.ts'
  const part = last.replace(/\.ts$/, '')
  const own = `features/${feature}/${part}`
  return STOREYS[part] ?? (floorOf(own) >= 0 ? own : `features/${feature}`)
}
const floorOf = (room: string): number => FLOORS.findIndex((rooms) => rooms.includes(room))
const files = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.ts'))
const importsOf = (file: string, imports = /from '(\.{1,2}\/[^']+)'/g): string[] =>
  [...readFileSync(path.join('src', file), 'utf8').matchAll(imports)].map(([, target = '']) => path.join(path.dirname(file), target))

/** Nothing was found; if something was, the failure says what to do. CONTRIBUTING.md has more. */
const expectNone = (found: readonly unknown[], remedy: string): void => expect(found, `To mend it: ${remedy}`).toEqual([])

describe('the house', () => {
  test.each(files)('%s imports downwards only', (file) => {
    const room = roomOf(file)
    expect(floorOf(room), `src/${room} has no floor: add the room to FLOORS, above what it imports`).toBeGreaterThanOrEqual(0)
    for (const target of importsOf(file)) {
      const other = roomOf(target)
      if (other === room || other === '..') continue
      expect(
        floorOf(other),
        `${file} imports ${target}, a room above its own: move what both need down, or hand it in as a parameter`,
      ).toBeGreaterThan(floorOf(room))
    }
  })

  test('the scope and the HTTP interface reach what learns by RPC: it runs in an object of its own', () => {
    const importing = files.filter(
      (file) => /^(?:engine|http)$/.test(roomOf(file)) && importsOf(file).some((target) => roomOf(target) === 'features/learning'),
    )
    expectNone(importing, 'Call the Learner by its RPC interface, in contract/.')
  })

  test('only the store reads the binding DB: its calls have a deadline, and say if the binding is missing', () => {
    const reading = files.filter((file) => file !== 'store/store.ts' && /\benv\.DB\b/.test(readFileSync(path.join('src', file), 'utf8')))
    expectNone(reading, 'Call storeOf(env).')
  })

  test('only standalone/langchain imports LangChain, and nothing imports that: no other user needs it', () => {
    const outside = files.filter((file) => !file.startsWith('standalone/langchain/'))
    const isImported = /from '(@?langchain['/]|[^']*\/langchain\/)/
    const importing = outside.filter((file) => isImported.test(readFileSync(path.join('src', file), 'utf8')))
    expectNone(importing, 'Put what needs LangChain into src/standalone/langchain.')
  })
})

describe('the dashboard', () => {
  const root = 'dashboard/src'
  const sources = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => /\.(?:tsx?|css)$/.test(name))
  const textOf = (file: string): string => readFileSync(path.join(root, file), 'utf8')

  const SENT =
    /^(?:contract\/(?:lists\/[\w-]+|address)|features\/[\w-]+\/(?:contract\/lists|page)|traces\/entries\/sentences|base\/amounts)\.ts$/
  test('imports types of the contract from the Worker, and lists and sentences: no other code of it is sent to a browser', () => {
    const importing = sources.filter((file) => {
      const imports = [...textOf(file).matchAll(/^import (type )?[^']*?from '(?:\.\.\/)+src\/([^']+)'/gm)]
      return imports.some(
        ([, type, target = '']) =>
          !SENT.test(target) && (!type || !/^(?:contract|features\/[\w-]+\/(?:contract|operations))\//.test(target)),
      )
    })
    expectNone(importing, 'Import a type of contract/, or ask the server for the value.')
  })

  test('is sent no library by a list or a sentence', () => {
    const sent = files.filter((file) => SENT.test(file))
    expect(sent).toContain('contract/lists/scopes.ts')
    const imported = sent.flatMap((file) => importsOf(file, /^import (?!type )[^;]*?from '([^']+)'/gm))
    expectNone(
      imported.filter((target) => !SENT.test(target)),
      'These files are sent to browsers: keep them free of libraries, and compute the value where it is used.',
    )
  })

  test('sets no HTML and no inline script', () => {
    expectNone(
      sources.filter((file) => /innerHTML|dangerouslySet|javascript:|\beval\(/.test(textOf(file))),
      'Build elements with JSX: what a model or tenant wrote may be shown here.',
    )
  })
})

describe('the features', () => {
  test('are named by no file of the engine, types included', () => {
    const isFeature = (target: string): boolean => target.startsWith('features/')
    expectNone(
      files.filter((file) => file.startsWith('engine/') && importsOf(file).some(isFeature)),
      'Declare what the engine needs in ScopeFeature (src/engine/feature.ts), and let the feature give it with inScope.',
    )
  })

  /** Files outside a feature that import it, its line in the list aside: they only become fewer. */
  const IMPORTERS: Readonly<Record<string, number>> = {
    alerts: 1,
    approvals: 9,
    'dead-letters': 1,
    archive: 0,
    'control-plane': 2,
    decisions: 7,
    hooks: 0,
    learning: 15,
    market: 13,
    notices: 5,
    proof: 5,
    protocols: 0,
    receipts: 4,
    replay: 19,
    statistics: 10,
    traces: 5,
  }
  test('are deleted by deleting a folder and a line, except for so many files each', () => {
    const roots = ['src', 'cli', 'client', 'dashboard/src', 'testing', 'examples']
    const importers = new Map<string, Set<string>>()
    for (const root of roots)
      for (const name of readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((one) => /\.tsx?$/.test(one))) {
        const file = path.join(root, name)
        if (file === 'src/features/index.ts' || file.includes('node_modules')) continue
        for (const [, target = ''] of readFileSync(file, 'utf8').matchAll(/from '(\.{1,2}\/[^']+)'/g)) {
          const [, feature = ''] = /^src\/features\/([\w-]+)\//.exec(path.join(path.dirname(file), target)) ?? []
          if (feature && !file.startsWith(`src/features/${feature}/`))
            importers.set(feature, (importers.get(feature) ?? new Set()).add(file))
        }
      }
    const folders = readdirSync('src/features', { withFileTypes: true }).filter((entry) => entry.isDirectory())
    const more = folders.filter(({ name }) => (importers.get(name)?.size ?? 0) > (IMPORTERS[name] ?? 0))
    expectNone(
      more.map(({ name }) => [name, ...(importers.get(name) ?? [])]),
      'Hang the feature on Feature, ScopeFeature or DeploymentFeature; or move what others need into a room that they share.',
    )
  })
})

describe('the tables of a scope', () => {
  test('are written by one folder each', () => {
    const written = /\b(?:INTO|UPDATE|DELETE FROM) "?([a-z_]+)"?/g
    const writers = new Map<string, Set<string>>()
    for (const file of files.filter((name) => ['engine', 'kernel'].includes(roomOf(name)))) {
      for (const [, table = ''] of readFileSync(path.join('src', file), 'utf8').matchAll(written))
        writers.set(table, (writers.get(table) ?? new Set()).add(path.dirname(file)))
    }
    expect([...writers.keys()]).toEqual(expect.arrayContaining(['events', 'effects', 'jobs', 'log', 'state']))
    expectNone(
      [...writers].filter(([, folders]) => folders.size > 1).map(([table, folders]) => [table, ...folders]),
      'Call a function of the folder that owns the table.',
    )
  })
})

/** Strongly connected components of the import graph, types included (Tarjan). */
function circlesOf(graph: ReadonlyMap<string, readonly string[]>): string[][] {
  const place = new Map<string, number>()
  const lowest = new Map<string, number>()
  const open: string[] = []
  const circles: string[][] = []
  const visit = (file: string): number => {
    const own = place.size
    place.set(file, own)
    open.push(file)
    let low = own
    for (const target of graph.get(file) ?? []) {
      if (!place.has(target)) low = Math.min(low, visit(target))
      else if (open.includes(target)) low = Math.min(low, lowest.get(target) ?? place.get(target) ?? low)
    }
    lowest.set(file, low)
    if (low === own) {
      const circle = open.splice(open.indexOf(file))
      if (circle.length > 1) circles.push(circle)
    }
    return low
  }
  for (const file of graph.keys()) if (!place.has(file)) visit(file)
  return circles
}

describe('imports', () => {
  test.each(['src', 'cli', 'dashboard/src', 'client'])('form no circle of files in %s, type imports included', (root) => {
    const sources = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => /\.tsx?$/.test(name))
    const targetsOf = (file: string): string[] =>
      Array.from(readFileSync(path.join(root, file), 'utf8').matchAll(/from '(\.{1,2}\/[^']+)'/g), ([, target = '']) =>
        path.join(path.dirname(file), target),
      )
    expectNone(
      circlesOf(new Map(sources.map((file) => [file, targetsOf(file)]))),
      'Move what both files need into a third one below them; for types, too.',
    )
  })

  /** The circles of folders within rooms. Each wiring file stands by itself. */
  function circlesOfFolders(imports: RegExp): string[][] {
    const placeOf = (file: string): string =>
      path.dirname(file) === roomOf(file) || path.basename(file) === 'wiring.ts' ? file : path.dirname(file)
    const graph = new Map<string, string[]>()
    for (const file of files) {
      const others = importsOf(file, imports)
        .filter((target) => roomOf(target) === roomOf(file))
        .map(placeOf)
      const known = graph.get(placeOf(file)) ?? []
      graph.set(placeOf(file), [...known, ...others.filter((other) => other !== placeOf(file))])
    }
    return circlesOf(graph)
  }

  test('form no circle of folders within a room, types aside', () => {
    expectNone(
      circlesOfFolders(/^import (?!type )[^;]*?from '(\.{1,2}\/[^']+)'/gm),
      'Hand the part in as a parameter; wiring.ts of the room connects both.',
    )
  })

  test('form no more circles of folders than before, types included', () => {
    const circles = circlesOfFolders(/from '(\.{1,2}\/[^']+)'/g)
    // The number of folders and files in the circle of each room that has one. It only falls.
    const most: Record<string, number> = { engine: 13 }
    const sizes = circles.map((circle) => [roomOf(circle[0] ?? ''), circle.length] as const)
    expectNone(
      sizes.filter(([room, size]) => size > (most[room] ?? 0)),
      'Move the type to the folder that is used by the other one.',
    )
  })

  test('that do form a circle are found', () => {
    const graph = new Map([
      ['a', ['b']],
      ['b', ['c', 'd']],
      ['c', ['a']],
      ['d', []],
    ])
    expect(circlesOf(graph)).toEqual([['a', 'b', 'c']])
  })
})

describe('names and functions', () => {
  const sources = ['src', 'cli', 'dashboard/src', 'client'].flatMap(sourcesIn)
  test('an exported type has a name of its own', () => {
    expectNone(namesakesIn(sources, true), 'Use the type that exists, or give yours a name that says the difference.')
  })

  test('the name of a local type is that of types in at most six files', () => {
    expectNone(namesakesIn(sources, false), 'Give the type the name of what it holds here.')
  })

  test('at most eight members are taken from a context, by name or by Pick', () => {
    expectNone(
      sources.flatMap((source) => takingTooMuch(source, 8)),
      'Split the function, or hand in the whole part that it works on.',
    )
  })

  test('no file is longer than 600 lines; the medians of files and functions are printed alone', () => {
    console.info(mediansOf(sources))
    expectNone(
      sources.filter(({ code }) => code.split('\n').length > 601).map(({ file }) => file),
      'Split the file by what its parts are about.',
    )
  })
})

describe('folders', () => {
  test.each(['src', 'cli', 'dashboard/src', 'client'])('each have a line in the README.md of %s', (root) => {
    const names = readdirSync(root, { recursive: true, encoding: 'utf8' }).filter((name) => /\.tsx?$/.test(name))
    const folders = [...new Set(names.map((name) => path.dirname(name)))].filter((folder) => folder !== '.')
    const lines = [...readFileSync(path.join(root, 'README.md'), 'utf8').matchAll(/^- `([^`]+)\/`: [A-Z].*\.$/gm)]
    const described = lines.map(([, folder = '']) => folder)
    expectNone(
      folders.filter((folder) => !described.some((pattern) => path.matchesGlob(folder, pattern))),
      `Add a line "- \`FOLDER/\`: What it has." to ${root}/README.md.`,
    )
    expectNone(
      described.filter((pattern) => globSync(pattern, { cwd: root }).length === 0),
      `Remove the line from ${root}/README.md.`,
    )
  })
})

describe('shapes on the wire', () => {
  const named = /\.meta\(\{ id: '(\w+)'|\.openapi\(\s*'(\w+)'/g
  const namesIn = (file: string): string[] =>
    [...readFileSync(path.join('src', file), 'utf8').matchAll(named)].map(([, meta, openapi]) => meta ?? openapi ?? '')

  test('get their names in contract/ only', () => {
    const elsewhere = files.filter((file) => roomOf(file) !== 'contract' && namesIn(file).length > 0)
    expectNone(elsewhere, 'Move the schema with its name into contract/.')
  })

  test('have one schema each', () => {
    const names = files.flatMap(namesIn)
    expect(names).toContain('EventRecord')
    expectNone(
      names.filter((name, index) => names.indexOf(name) !== index),
      'Import the schema that exists.',
    )
  })

  test('need no HTTP framework: the client and other processes import them, too', () => {
    const importing = files.filter(
      (file) => /^(contract|base)$/.test(roomOf(file)) && /from '(@hono\/|hono)/.test(readFileSync(path.join('src', file), 'utf8')),
    )
    expectNone(importing, 'Move what needs the framework to http/.')
  })
})

test('canonical JSON is hashed by two functions of base/ alone, at once and asynchronously', () => {
  const hashed = /\b(?:hashOf|textHash|sha256|update)\(canonicalJson\(/
  const found = files.filter((file) => hashed.test(readFileSync(path.join('src', file), 'utf8')))
  expect(found.toSorted()).toEqual(['base/hash.ts', 'base/json.ts'])
})

describe('properties', () => {
  const tests = readdirSync('tests', { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.test.ts'))
  const textOf = (file: string): string => readFileSync(path.join('tests', file), 'utf8')

  test('are asserted by one function, which gives each its fixed seed', () => {
    const otherwise = /\bfc\s*\.\s*(?:assert|check|sample|statistics|modelRun|asyncModelRun)\b|import \{[^}]*\} from 'fast-check'/
    expectNone(
      tests.filter((file) => otherwise.test(textOf(file))),
      'Use assertProperty of tests/support/property.ts.',
    )
  })

  test('have a seed each, which no other property has', () => {
    const used = tests.flatMap((file) => [...textOf(file).matchAll(/\bassertProperty\(\s*'([^']+)'/g)].map(([, name]) => name ?? ''))
    expect(used.toSorted(), 'Add a seed for the property to SEEDS in tests/support/property.ts, or remove an unused one.').toEqual(
      Object.keys(SEEDS).toSorted(),
    )
    expect(new Set(Object.values(SEEDS)).size).toBe(used.length)
  })
})

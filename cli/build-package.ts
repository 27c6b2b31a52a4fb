import { execFileSync } from 'node:child_process'
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { parse, type Token } from 'acorn'
import { packageFolder } from './lib/package.ts'

/** Builds dist/: the entries' modules, their types, and the files that they read. */
const dist = path.join(packageFolder, 'dist')
const exported = JSON.parse(readFileSync(path.join(packageFolder, 'package.json'), 'utf8')) as {
  exports: Record<string, string | { types: string }>
}
const tsc = path.join(path.dirname(createRequire(import.meta.url).resolve('typescript/package.json')), 'bin/tsc')

const compile = (...options: readonly string[]) =>
  execFileSync(process.execPath, [tsc, '-p', 'tsconfig.package.json', ...options], { cwd: packageFolder, stdio: 'inherit' })

rmSync(dist, { recursive: true, force: true })
// Editors show the comments of declarations. In modules they would be a third of the package. Types
// are checked once, with the declarations.
compile('--declaration', 'false', '--removeComments', '--noCheck')
compile('--emitDeclarationOnly')
copyFileSync(path.join(packageFolder, 'src/reflexes/engine/sandbox.wasm'), path.join(dist, 'src/reflexes/engine/sandbox.wasm'))
inlineMigrations('migrations/scope')
const files = readdirSync(dist, { recursive: true, encoding: 'utf8' })
const declarations = files.filter((file) => file.endsWith('.d.ts'))
for (const file of declarations) rewrite(file, (text) => tabbed(compiledNames(isInner(file) ? withoutComments(text) : text)))
for (const file of files) if (file.endsWith('.js')) rewrite(file, (text) => tabbed(text, templatesOf(text)))
const needed = declarationsOf(Object.values(exported.exports).flatMap((entry) => (typeof entry === 'string' ? [] : [entry.types])))
for (const file of declarations) if (!needed.has(path.join(dist, file))) rmSync(path.join(dist, file))
// No module imports one that has types alone.
for (const file of files) if (file.endsWith('.js') && isEmpty(file)) rmSync(path.join(dist, file))

/** Bundlers import SQL only by a rule of the project that they bundle, so a module carries it. */
function inlineMigrations(folder: string): void {
  const from = path.join(packageFolder, folder)
  const journal = JSON.parse(readFileSync(path.join(from, 'meta/_journal.json'), 'utf8')) as { entries: { idx: number; tag: string }[] }
  const migrations = Object.fromEntries(
    journal.entries.map(({ idx, tag }) => [`m${String(idx).padStart(4, '0')}`, readFileSync(path.join(from, `${tag}.sql`), 'utf8')]),
  )
  const to = path.join(dist, folder)
  mkdirSync(to, { recursive: true })
  writeFileSync(path.join(to, 'migrations.js'), `export default ${JSON.stringify({ journal, migrations })}\n`)
  copyFileSync(path.join(from, 'migrations.d.ts'), path.join(to, 'migrations.d.ts'))
}

function isEmpty(file: string): boolean {
  return readFileSync(path.join(dist, file), 'utf8').trim() === 'export {};'
}

/** True for folders whose names no entry exports: editors show nobody their comments. */
function isInner(file: string): boolean {
  return /^src\/(?:base|engine|expressions|http|kernel|reflexes|store|traces)\//.test(file)
}

function withoutComments(text: string): string {
  return text.replaceAll(/^[ \t]*\/\*\*[\s\S]*?\*\/\n/gm, '')
}

function rewrite(file: string, change: (text: string) => string): void {
  const whole = path.join(dist, file)
  writeFileSync(whole, change(readFileSync(whole, 'utf8')))
}

/** tsc leaves `.ts` in the imports of declarations; the package has only what it compiled to. */
function compiledNames(text: string): string {
  return text.replaceAll(/((?:from |import\(|declare module )['"]\.{1,2}\/[^'"]+)\.tsx?(['"])/g, '$1.js$2')
}

/** tsc indents by four spaces; tabs take less. Text within templates stays. */
function tabbed(text: string, templates: readonly Token[] = []): string {
  const isText = (at: number) => templates.some(({ start, end }) => start < at && at <= end)
  return text.replaceAll(/^(?: {4})+/gm, (spaces, at: number) => (isText(at) ? spaces : '\t'.repeat(spaces.length / 4)))
}

/** The texts of a module's template literals that have several lines. */
function templatesOf(text: string): Token[] {
  const tokens: Token[] = []
  parse(text, { ecmaVersion: 'latest', sourceType: 'module', allowHashBang: true, onToken: tokens })
  return tokens.filter(({ type, start, end }) => type.label === 'template' && text.slice(start, end).includes('\n'))
}

/** The declarations of the entries, and all that these name: others cannot be imported. */
function declarationsOf(entries: readonly string[]): Set<string> {
  const found = new Set<string>()
  const visit = (file: string): void => {
    if (found.has(file) || !existsSync(file)) return
    found.add(file)
    for (const [, module = ''] of readFileSync(file, 'utf8').matchAll(
      /(?:from |import\(|import |declare module )['"](\.{1,2}\/[^'"]+)\.js['"]/g,
    ))
      visit(path.join(path.dirname(file), `${module}.d.ts`))
  }
  for (const entry of entries) visit(path.join(packageFolder, entry))
  return found
}

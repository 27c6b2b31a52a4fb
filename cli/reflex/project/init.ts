import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { Option, type Command } from 'commander'
import { UsageError } from '../../lib/cli-error.ts'
import { packageFolder, version } from '../../lib/package.ts'
import { projectFiles, TEMPLATES, type TemplateName } from './template.ts'

type Manifest = Record<'dependencies' | 'devDependencies', Record<string, string>>

const WIDEST = Math.max(...Object.keys(TEMPLATES).map((name) => name.length))

type InitOptions = { package: string; template: TemplateName }

export function addInit(program: Command): void {
  program
    .command('init <dir>')
    .description('Create a project: an agent, its deployment and its test')
    .addOption(new Option('--template <name>', 'what it begins with').choices(Object.keys(TEMPLATES)).default('chat'))
    .option('--package <spec>', 'the version or tarball of reflex-agents', `^${version}`)
    .addHelpText(
      'after',
      `\nTemplates:\n${Object.entries(TEMPLATES)
        .map(([name, does]) => `  ${name.padEnd(WIDEST)}  ${does}`)
        .join('\n')}`,
    )
    .action((dir: string, options: InitOptions, command: Command) => {
      create(resolve(dir), options)
      told(command, { folder: resolve(dir), template: options.template }, nextSteps(dir, options.template))
    })
}

/** Prints what was made and what to do next: with `--json` as one document. */
export function told(command: Command, made: object, next: string): void {
  const { json = false } = command.optsWithGlobals<{ json?: boolean }>()
  console.log(json ? JSON.stringify({ ...made, next: next.split('\n') }, null, 2) : next)
}

/** Throws if the folder has files: nothing is overwritten. */
function create(folder: string, { package: spec, template }: InitOptions): void {
  if (existsSync(folder) && readdirSync(folder).length > 0)
    throw new UsageError(`${folder} is not empty.`, 'Name a folder that does not exist yet.')
  const { dependencies, devDependencies } = JSON.parse(readFileSync(join(packageFolder, 'package.json'), 'utf8')) as Manifest
  const files = projectFiles({
    name: nameOf(folder),
    template,
    spec: specOf(spec),
    folder: join(packageFolder, 'templates'),
    wrangler: readFileSync(join(packageFolder, 'wrangler.toml'), 'utf8'),
    versions: { ...devDependencies, ...dependencies },
  })
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true })
    writeFileSync(join(folder, name), content)
  }
}

/** npm reads a path to a tarball from the folder of the project. */
function specOf(spec: string): string {
  if (!spec.endsWith('.tgz') || /^[a-z+]+:/i.test(spec)) return spec
  const file = resolve(spec)
  if (!existsSync(file)) throw new UsageError(`There is no file ${file}.`, 'Name a tarball that npm pack has made, or a version.')
  return file
}

/** A name that npm and Workers accept. */
const nameOf = (folder: string): string =>
  basename(folder)
    .toLowerCase()
    .replaceAll(/[^a-z0-9-]+/g, '-')
    .replaceAll(/^-+|-+$/g, '')
    .slice(0, 54) || 'reflex'

/** The Node that the user's shell starts: an older one has started the one that runs this. */
const shellNode = (): string => process.env['REFLEX_SHELL_NODE'] ?? process.version

const olderNode = (version: string): string => {
  const [major = 0, minor = 0] = version.slice(1).split('.').map(Number)
  if (major > 22 || (major === 22 && minor >= 14)) return ''
  return `
Your Node is ${version}; the project needs 22.14 or later. After npm install, this brings one
for the project alone, which its npm scripts use:

  npm i -D node@24
`
}

const inShell = (dir: string): string => (/^[\w./@:-]+$/.test(dir) ? dir : `'${dir.replaceAll("'", `'\\''`)}'`)

const nextSteps = (dir: string, template: TemplateName): string => `Created a project in ${dir}: it ${TEMPLATES[template]}.
${olderNode(shellNode())}
Then:

  cd ${inShell(dir)}
  npm install
${template === 'sdk' ? '  npm test' : STEPS_OF_A_WORKER}
`

const STEPS_OF_A_WORKER = `  npm run dev       # runs it on this machine, and prints how to send the first event
  npm test
  npm run deploy    # to your Cloudflare account; --dry-run only checks`

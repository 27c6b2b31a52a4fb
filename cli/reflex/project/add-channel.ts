import { appendFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { Argument, type Command } from 'commander'
import { UsageError } from '../../lib/cli-error.ts'
import { packageFolder } from '../../lib/package.ts'
import { projectFolder } from './folder.ts'
import { told } from './init.ts'

export const CHANNELS = ['email', 'github', 'slack', 'telegram'] as const
type Channel = (typeof CHANNELS)[number]

/** `hook`: what verifies deliveries. `tool`: what replies. */
const SECRETS: Readonly<Record<Channel, { hook: string; tool?: string }>> = {
  email: { hook: '"whsec_BASE64", with what `openssl rand -base64 32` prints' },
  github: { hook: 'what signs deliveries', tool: '"Bearer TOKEN", with the right to write comments' },
  slack: { hook: 'what signs deliveries', tool: '"Bearer xoxb-…", the token of the bot' },
  telegram: { hook: 'what signs deliveries', tool: 'the token of the bot' },
}
const UNVERIFIED = 'email-unverified'
const hooksOf = (name: Channel): string[] => (name === 'email' ? [name, UNVERIFIED] : [name])

export function addAdd(program: Command): void {
  program
    .command('add')
    .description('Add a part to the project in this folder')
    .command('channel')
    .description('Add a channel: the hook that takes its messages, and the agent that replies')
    .addArgument(new Argument('<name>', 'the channel').choices(CHANNELS))
    .action((name: Channel, _options: object, command: Command) => told(command, { channel: name }, addChannel(projectFolder(), name)))
}

/** Writes the files of a channel into a project, and returns what is left to do. */
export function addChannel(project: string, name: Channel): string {
  const agent = `src/agents/${name}.ts`
  const hooks = hooksOf(name)
  const files = [agent, ...hooks.map((hook) => `src/channels/${hook}.json`)]
  const index = path.join(project, 'src/index.ts')
  const taken = files.find((file) => existsSync(path.join(project, file)))
  if (taken !== undefined) throw new UsageError(`${taken} is there already.`, 'Nothing was written. Remove it to begin again.')
  for (const file of files) {
    const to = path.join(project, file)
    mkdirSync(path.dirname(to), { recursive: true })
    writeFileSync(to, readFileSync(path.join(packageFolder, 'templates/channels', path.basename(file))))
  }
  const source = existsSync(index) ? readFileSync(index, 'utf8') : ''
  const listed = withAgent(source, name)
  const received = name === 'email' ? withHandler(listed ?? source) : null
  if (listed !== null || received !== null) writeFileSync(index, received ?? listed ?? source)
  const { hook, tool } = SECRETS[name]
  const secret = (kind: string, what: string) => `  npx wrangler secret put REFLEX_${kind}_${name.toUpperCase()}    # ${what}`
  return [
    `The channel ${name} is in ${files.join(', ').replace(/, ([^,]*)$/, ' and $1')}.`,
    listed === null ? `Add \`${name}\` of ./agents/${name}.ts to the agents in src/index.ts.` : `src/index.ts lists its agent.`,
    ...(name === 'email' ? withMail(project, received !== null) : []),
    '',
    'Then, for a deployment:',
    secret('HOOK', hook),
    ...(tool === undefined ? [] : [secret('TOOL', tool)]),
    '  npm run deploy',
    ...hooks.map(
      (one) =>
        `  curl -X PUT -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' "$URL/v1/hooks/${one}" -d @src/channels/${one}.json`,
    ),
    name === 'email'
      ? 'Have Email Routing send an address to this Worker. docs/channels.md has each channel.'
      : `Enter $URL/v1/hooks/${name} as the address of deliveries. docs/channels.md has each channel.`,
  ].join('\n')
}

/** The deployment with the agent at the head of its list; null where the list is not found. */
function withAgent(source: string, name: Channel): string | null {
  const list = /agents: \[/
  if (!list.test(source)) return null
  return `import { ${name} } from './agents/${name}.ts'\n${source.replace(list, `agents: [${name}, `)}`.replace(', ]', ']')
}

const HANDLER = 'email: mailHandler({ handlers: worker.handlers, parse: (raw) => PostalMime.parse(raw) }),'

/** The deployment with the handler of mails; null where its handlers are not found. */
function withHandler(source: string): string | null {
  const handlers = /^( *)\.\.\.worker\.handlers,\n/m
  const reflex = /import \{ reflex \} from 'reflex-agents'/
  if (!handlers.test(source) || !reflex.test(source)) return null
  return `import PostalMime from 'postal-mime'\n${source}`
    .replace(reflex, "import { mailHandler, reflex } from 'reflex-agents'")
    .replace(handlers, (line, indent: string) => `${line}${indent}${HANDLER}\n`)
}

/** The version that the handler of mails was tested with. */
const POSTAL_MIME = '4.0.0'

/** Adds what reads mails and the binding that sends them. Returns what was done or is left. */
function withMail(project: string, received: boolean): string[] {
  const [packed, config] = [path.join(project, 'package.json'), path.join(project, 'wrangler.toml')]
  const manifest = JSON.parse(existsSync(packed) ? readFileSync(packed, 'utf8') : '{}') as { dependencies?: Record<string, string> }
  const dependencies = { ...manifest.dependencies, 'postal-mime': manifest.dependencies?.['postal-mime'] ?? POSTAL_MIME }
  writeFileSync(packed, `${JSON.stringify({ ...manifest, dependencies }, null, 2)}\n`)
  const binding = existsSync(config) && !readFileSync(config, 'utf8').includes('[[send_email]]')
  if (binding) appendFileSync(config, '\n# Sends the replies of the channel email.\n[[send_email]]\nname = "EMAIL"\n')
  return [
    'package.json has postal-mime, which reads mails: run npm install.',
    received ? 'src/index.ts takes mails.' : `Add \`${HANDLER}\` to the handlers that src/index.ts exports.`,
    binding
      ? 'wrangler.toml has the binding EMAIL, which sends.'
      : 'Give wrangler.toml the binding EMAIL: [[send_email]] with name = "EMAIL".',
  ]
}

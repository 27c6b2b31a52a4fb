import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import path from 'node:path'
import { Argument, type Command } from 'commander'
import { UsageError } from '../../lib/cli-error.ts'
import { packageFolder } from '../../lib/package.ts'
import { projectFolder } from './folder.ts'

export const CHANNELS = ['github', 'slack', 'telegram'] as const
type Channel = (typeof CHANNELS)[number]

const NEXT: Readonly<Record<Channel, string>> = {
  github: 'REFLEX_TOOL_GITHUB is "Bearer TOKEN", with the right to write comments.',
  slack: 'REFLEX_TOOL_SLACK is "Bearer xoxb-…", the token of the bot.',
  telegram: 'REFLEX_TOOL_TELEGRAM is the token of the bot.',
}

export function addAdd(program: Command): void {
  program
    .command('add')
    .description('Add a part to the project in this folder')
    .command('channel')
    .description('Add a channel: the hook that takes its messages, and the agent that replies')
    .addArgument(new Argument('<name>', 'the channel').choices(CHANNELS))
    .action((name: Channel) => console.log(addChannel(projectFolder(), name)))
}

/** Writes the files of a channel into a project, and returns what is left to do. */
export function addChannel(project: string, name: Channel): string {
  const [agent, hook] = [`src/agents/${name}.ts`, `src/channels/${name}.json`]
  const index = path.join(project, 'src/index.ts')
  const taken = [agent, hook].find((file) => existsSync(path.join(project, file)))
  if (taken !== undefined) throw new UsageError(`${taken} is there already.`, 'Nothing was written. Remove it to begin again.')
  for (const file of [agent, hook]) {
    const to = path.join(project, file)
    mkdirSync(path.dirname(to), { recursive: true })
    writeFileSync(to, readFileSync(path.join(packageFolder, 'templates/channels', path.basename(file))))
  }
  const source = existsSync(index) ? readFileSync(index, 'utf8') : ''
  const listed = withAgent(source, name)
  if (listed !== null) writeFileSync(index, listed)
  return [
    `The channel ${name} is in ${agent} and ${hook}.`,
    listed === null ? `Add \`${name}\` of ./agents/${name}.ts to the agents in src/index.ts.` : `src/index.ts lists its agent.`,
    '',
    'Then, for a deployment:',
    `  npx wrangler secret put REFLEX_HOOK_${name.toUpperCase()}    # what signs deliveries`,
    `  npx wrangler secret put REFLEX_TOOL_${name.toUpperCase()}    # ${NEXT[name]}`,
    '  npm run deploy',
    `  curl -X PUT -H "Authorization: Bearer $KEY" -H 'Content-Type: application/json' "$URL/v1/hooks/${name}" -d @${hook}`,
    `Enter $URL/v1/hooks/${name} as the address of deliveries. docs/channels.md has each channel.`,
  ].join('\n')
}

/** The deployment with the agent at the head of its list; null where the list is not found. */
function withAgent(source: string, name: Channel): string | null {
  const list = /agents: \[/
  if (!list.test(source)) return null
  return `import { ${name} } from './agents/${name}.ts'\n${source.replace(list, `agents: [${name}, `)}`.replace(', ]', ']')
}

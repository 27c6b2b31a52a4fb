import { Option, type Command } from 'commander'
import type { z } from 'zod'
import type { Bulletin, listedSkill, registeredSkill, skillVersion } from '../../../src/contract/skill.ts'
import { pages, route } from '../pages.ts'
import { handler, type Session } from '../session.ts'
import { openStandalone } from '../standalone-file.ts'
import { linesOf, written, type Column } from '../table.ts'
import { jsonObject, limitOption } from '../values.ts'
import { addSkillTests } from './test.ts'

type SkillItem = z.infer<typeof listedSkill>
type Registered = z.infer<typeof registeredSkill>
type SkillVersionItem = z.infer<typeof skillVersion>

const columns: Column<Pick<SkillItem, 'id' | 'version' | 'state' | 'owner'> & { description?: string | undefined }>[] = [
  { title: 'ID', of: ({ id }) => id },
  { title: 'VERSION', of: ({ version }) => version },
  { title: 'STATE', of: ({ state }) => state, colour: ({ state }) => (state === 'active' ? 'green' : 'dim') },
  { title: 'OWNER', of: ({ owner }) => owner },
  { title: 'DESCRIPTION', of: ({ description }) => description },
]

export function addSkill(program: Command): void {
  const skill = program.command('skill').description('Register, test, activate and propose skills')
  skill
    .command('list')
    .description('List skills, by id')
    .option('--search <text>', 'search ids and descriptions')
    .addOption(new Option('--state <state>', 'in one state').choices(['candidate', 'active', 'deprecated']))
    .addOption(limitOption())
    .option('--file <path>', 'the skills in the file of a standalone process')
    .action(handler(list))
  skill
    .command('push <files...>')
    .description('Register manifests (JSON) as candidates')
    .option('--any-tools', 'accept tools that no agent of the deployment has')
    .action(handler(push))
  addSkillTests(skill)
  skill
    .command('activate <ref>')
    .description('Make a version (id@version) active, or another state')
    .addOption(new Option('--state <state>', 'the new state').choices(['active', 'deprecated']).default('active'))
    .option('--reason <text>', 'why, for the list of versions')
    .option('--force', 'activate it although it has not passed its tests; needs --reason')
    .action(handler(activate))
}

type List = { limit: number; search?: string; state?: string; file?: string }

async function list({ api, print, signal }: Session, { limit, search: q, state, file }: List): Promise<void> {
  if (file !== undefined) {
    const { skills } = await openStandalone(file)
    const items = skills.all().map(({ manifest, state }) => ({ ...manifest, state }))
    return print.page({ items, next_cursor: null }, columns, 'The file holds no skills.')
  }
  const query = { q, state }
  print.page(await pages<SkillItem>(api(), { parts: ['skills'], query, limit, most: 1000, signal }), columns, 'No skill matches.')
}

async function push({ api, print, signal }: Session, files: string[], { anyTools }: { anyTools?: true }): Promise<void> {
  for (const file of files) {
    const body = jsonObject(`@${file}`, file)
    const path = route(['skills'], { tools: anyTools ? 'any' : undefined })
    const skill = await api().json<Registered>(path, { method: 'POST', body, signal })
    print.item(skill, () => `${written(skill.id)}@${written(skill.version)} is ${skill.state}.`)
  }
}

type Change = { state: string; reason?: string; force?: true }

async function activate({ api, print, signal }: Session, ref: string, body: Change): Promise<void> {
  const skill = await api().json<SkillVersionItem>(route(['skills', ref, 'state']), { method: 'POST', body, signal })
  print.result(skill, () => [`${written(skill.id)}@${written(skill.version)} is ${skill.state}.`])
}

export function addBulletin(program: Command): void {
  program
    .command('bulletin')
    .description('The skills that a model would be shown')
    .command('preview <scope> [text]')
    .description('Show the bulletin of a scope for a text of the conversation')
    .action(
      handler(async ({ api, print, signal }, scope: string, text: string | undefined) => {
        const bulletin = await api().json<Bulletin>(route(['scopes', scope, 'bulletin'], { text }), { signal })
        print.result(bulletin, (paint) => [
          ...linesOf(bulletin.text === '' ? 'No skill fits.' : bulletin.text),
          '',
          ...bulletin.cards.map(({ skill_id, version, score, tokens, shortened }) =>
            paint('dim', `${written(skill_id)}@${written(version)}  score ${score}  ${tokens} tokens${shortened ? ', shortened' : ''}`),
          ),
          paint('dim', `${bulletin.tokens} tokens in total`),
        ])
      }),
    )
}

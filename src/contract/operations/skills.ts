import { z } from 'zod'
import { operations } from '../operation.ts'
import type { Column } from '../shown.ts'
import { paged, pageLimit, search } from '../paging.ts'
import { skillTest } from '../reports/skill-test.ts'
import { bulletin, listedSkill, skill, skillState, skillStates, skillVersion } from '../skill.ts'
import { skillId, skillVersion as versionName } from '../skill-names.ts'
import { refPath, scopePath, toolPage } from './shared.ts'

const operation = operations({ tag: 'Skills', roles: ['viewer'] })
const operators = operations({ tag: 'Skills', roles: ['operator'] })

const VISIBLE =
  'A key reads the skills whose owners may act in a scope that it covers; of all others only the versions whose manifest says `"scope": "org"`.'
export const skillPath = refPath({
  kind: 'skill',
  without: 'the newest active version, or the newest one if none is active',
  id: skillId,
  version: versionName,
})

/** A skill of a file has no description. */
type ListedColumns = Pick<z.infer<typeof listedSkill>, 'id' | 'version' | 'state' | 'owner'> & { description?: string | undefined }
export const skillColumns: readonly Column<ListedColumns>[] = [
  { title: 'ID', of: ({ id }) => id },
  { title: 'VERSION', of: ({ version }) => version },
  { title: 'STATE', of: ({ state }) => state, colour: ({ state }) => (state === 'active' ? 'green' : 'dim') },
  { title: 'OWNER', of: ({ owner }) => owner },
  { title: 'DESCRIPTION', of: ({ description }) => description },
]

export const list = operation('get /v1/skills', 'listSkills', 'List skills, by id', {
  description:
    'The newest active version of each, or the newest if none is active, without its manifest; with `state`, the newest one in that state. ' +
    VISIBLE,
  query: z.object({ q: search, state: skillState.optional(), limit: pageLimit(1000), cursor: skillId.optional() }),
  answers: { 200: [paged(listedSkill), 'A page.'] },
  command: {
    usage: 'list',
    flags: [
      ['--search <text>', 'search ids and descriptions', { field: 'q' }],
      ['--state <state>', 'in one state', { choices: skillStates }],
    ],
    table: { columns: skillColumns, empty: 'No skill matches.' },
  },
  mcp: {
    name: 'list_skills',
    title: 'Skills',
    description: 'The newest version of each skill.',
    input: { q: z.string().max(200).optional(), state: z.string().max(64).optional(), ...toolPage },
  },
})

export const schema = operation('get /v1/skills/schema', 'getSkillSchema', "Get a manifest's JSON Schema", {
  description: 'The structure of a manifest, for editors and authors. Registration also checks that its parts fit together.',
  answers: { 200: [z.record(z.string(), z.unknown()), 'JSON Schema, draft 2020-12.'] },
})

export const find = operation('get /v1/skills/{ref}', 'getSkill', 'Get a skill', {
  description: VISIBLE,
  params: skillPath,
  answers: { 200: [skill, 'The version with its manifest, and a list of all versions.'] },
  problems: [404],
})

export const setState = operators('post /v1/skills/{ref}/state', 'setSkillState', "Change a version's state", {
  description:
    'For the owner and admins; for a version that an agent made, the operators of its scope. A candidate becomes `active` or `deprecated`, an active version `deprecated`, and a deprecated ' +
    'one `active` again; none becomes a candidate. Name the version if there are several. The scopes follow within seconds. ' +
    'A version becomes active only if it passed its tests, which are run first if they never were. `force` with a `reason` activates it anyway: both are kept in `provenance`.',
  params: skillPath,
  body: z.strictObject({ state: skillState, reason: z.string().min(1).max(1000).optional(), force: z.boolean().default(false) }),
  example: { state: 'active', reason: 'it is needed' },
  answers: { 200: [skillVersion, 'The changed version.'] },
  problems: [404, 409],
  command: {
    usage: 'activate <ref>',
    help: 'Make a version (id@version) active, or another state',
    flags: [
      ['--state <state>', 'the new state', { choices: ['active', 'deprecated'], standard: 'active' }],
      ['--reason <text>', 'why, for the list of versions'],
      ['--force', 'activate it although it has not passed its tests; needs --reason'],
    ],
    shows: ({ id, version, state }) => [`${id}@${version} is ${state}.`],
  },
})

export const findTest = operation('get /v1/skills/{ref}/test', 'getSkillTest', "Get a skill's latest test", {
  params: skillPath,
  answers: { 200: [skillTest, 'The report of exactly this manifest.'] },
  problems: [404],
})

const dim = (text: string) => [{ colour: 'dim' as const, text }]

export const showBulletin = operations({ tag: 'Skills', roles: ['viewer'], scoped: true })(
  'get /v1/scopes/{scope}/bulletin',
  'getBulletin',
  'Show the bulletin of skills a model would get',
  {
    description:
      "At most five active skills that fit the scope and the conversation, best first, based on the scope's settings `project`, `env`, `toolset`, `repo` and `goal_labels`, on the `entity_types` of the events in its context, and on recently successful runs.",
    params: scopePath,
    query: z.object({
      text: z.string().max(10_000).default('').meta({ description: 'Text of the conversation.', example: 'deploy the latest to staging' }),
    }),
    answers: { 200: [bulletin, 'The bulletin.'] },
    command: {
      usage: 'preview <scope> [text]',
      help: 'Show the bulletin of a scope for a text of the conversation',
      shows: ({ text, cards, tokens: total }) => [
        ...(text === '' ? 'No skill fits.' : text).split(/\r?\n/),
        '',
        ...cards.map(({ skill_id, version, score, tokens, shortened }) =>
          dim(`${skill_id}@${version}  score ${score}  ${tokens} tokens${shortened ? ', shortened' : ''}`),
        ),
        dim(`${total} tokens in total`),
      ],
    },
  },
)

import { z } from 'zod'
import { scopeName } from '../../core/event.ts'
import { limits } from '../../base/limits.ts'
import * as lists from '../lists/reflexes.ts'
import { operations } from '../operation.ts'
import { paged, pageLimit, search, whole } from '../paging.ts'
import { keyName } from '../principal.ts'
import {
  listedReflex,
  reflex,
  reflexId,
  reflexItem,
  reflexRun,
  reflexSharing,
  reflexState,
  reflexStates,
  registeredReflex,
} from '../reflex.ts'
import { shownCertificate } from '../certificate.ts'
import { evaluation } from '../reports/reflex-report.ts'
import { refPath, toolPage } from './shared.ts'

const operation = operations({ tag: 'Reflexes', roles: ['viewer'] })
const operators = operations({ tag: 'Reflexes', roles: ['operator'] })

const version = z.int()
/** The body's JSON was checked when it was read: its depth is limited, and it can be stored. */
const jsonObject = z.record(z.string(), z.unknown())
/** Text that is stored exactly: lone surrogates and NUL would not be. */
const plainText = (longest: number) =>
  z
    .string()
    .max(longest)
    .refine((text) => text.isWellFormed() && !text.includes('\0'), 'contains a lone surrogate or a NUL')
const acts = version.nullable().describe('The version that acts where a chain follows the reflex; null: none does.')
const reason = z.string().min(1).max(1000).optional()
const count = z
  .string()
  .regex(/^[1-9]\d{0,5}$/)
  .transform(Number)
export const reflexPath = refPath({ kind: 'reflex', without: 'the newest version', id: reflexId, version: count })
const byId = z.object({ id: reflexId })
/** A certificate with the version that it is about. */
export const proven = shownCertificate.extend({ scope: z.string(), version })

export const list = operation(lists.reflexes.at, 'listReflexes', 'List reflexes, by id', {
  description:
    'The newest version of each, without its code; with `state`, the newest one in that state. A key reads the reflexes whose owners may act in a scope that it covers, those it has a licence for, and those that were published.',
  query: z.object({
    owner: keyName.optional(),
    state: reflexState.optional(),
    q: search,
    limit: pageLimit(1000),
    cursor: reflexId.optional(),
  }),
  answers: { 200: [paged(reflexItem), 'A page.'] },
  command: {
    usage: 'list',
    flags: [
      ['--search <text>', 'search ids and descriptions', { field: 'q' }],
      ['--state <state>', 'in one state', { choices: reflexStates }],
    ],
    table: {
      columns: lists.reflexes.columns,
      empty: 'No reflex matches.',
    },
  },
  mcp: {
    name: 'list_reflexes',
    title: 'Reflexes',
    description: 'The newest version of each reflex.',
    input: { q: z.string().max(200).optional(), state: z.string().max(64).optional(), ...toolPage },
  },
})

type Parameter = { type?: string; enum?: unknown[]; oneOf?: unknown[]; default?: unknown }

/** A line for each parameter of a template. */
function parameterLines(params: Record<string, unknown>): string[] {
  const { properties = {}, required = [] } = params as { properties?: Record<string, Parameter>; required?: string[] }
  return Object.entries(properties).map(([name, { type, enum: values, oneOf, default: standard }]) => {
    const kind = values ? values.map((value) => JSON.stringify(value)).join(' or ') : (type ?? (oneOf ? 'object' : 'JSON'))
    const rest = standard !== undefined ? `, ${JSON.stringify(standard)} by default` : required.includes(name) ? ', required' : ''
    return `  ${name}: ${kind}${rest}`
  })
}

const template = z.object({
  name: z.string(),
  description: z.string(),
  params: jsonObject.meta({ description: 'The JSON Schema of its parameters.' }),
})
export const listTemplates = operation('get /v1/reflexes/templates', 'listReflexTemplates', 'List templates', {
  description: 'Reflexes for common needs: register one with its `template` and `params` in place of code.',
  answers: { 200: [whole(template), 'All of them.'] },
  command: {
    usage: 'templates',
    help: 'List templates with their parameters',
    shows: ({ items }) =>
      items.flatMap(({ name, description, params }) => [
        [{ colour: 'bold' as const, text: name }, `  ${description}`],
        ...parameterLines(params).map((text) => [{ colour: 'dim' as const, text }]),
      ]),
  },
})

export const find = operation('get /v1/reflexes/{ref}', 'getReflex', 'Get a reflex', {
  params: reflexPath,
  answers: {
    200: [
      reflex.extend({
        certificates: z.array(proven).describe('The evidence for its versions in the scopes that the key covers. Updated within seconds.'),
      }),
      'The version with its code, a list of all versions, and their certificates.',
    ],
  },
  problems: [404],
})

/** `templates` is a route. */
const newReflexId = reflexId.refine((id) => id !== 'templates', 'the id templates is taken')

export const register = operators('post /v1/reflexes', 'registerReflex', 'Register a reflex, or a new version of it', {
  description:
    'From `code`, or from a `template` with its `params`. The code is checked and run on a sample context first; fields in `sample` override those of its event, ' +
    'for a reflex that reads fields of its own event type. The same code and description as the newest version change nothing. Only the owner and admins add versions.',
  body: z.strictObject({
    id: newReflexId,
    code: plainText(limits.program_bytes).optional().meta({
      description:
        'JavaScript with a function reflex(context) at the top level, 64 kB at most. A last line `// weights: BASE64` is the constant `weights`.',
    }),
    template: z.string().min(1).max(128).optional(),
    params: z.record(z.string(), z.unknown()).optional(),
    description: plainText(1000).optional(),
    sharing: z.enum(reflexSharing).default('project').describe('`org` publishes it: all keys may read it, all chains may name it.'),
    state: reflexState.exclude(['retired']).default('active'),
    sample: jsonObject.default({}),
  }),
  example: {
    id: 'greet',
    description: 'Answers a greeting at once.',
    code: 'function reflex(context) { return context.event.content === "hello" ? { action_type: "reply", content: "Hello!" } : null }',
  },
  answers: { 200: [registeredReflex, 'It existed already and is unchanged.'], 201: [registeredReflex, 'The new version.'] },
  problems: [409],
})

export const copy = operators('post /v1/reflexes/{ref}/copy', 'copyReflex', 'Copy a reflex', {
  description: 'Creates a reflex of your own under a new id, as a draft. It records its origin, and does not follow it.',
  params: reflexPath,
  body: z.strictObject({ id: newReflexId }),
  example: { id: 'my-greet' },
  answers: { 201: [registeredReflex, 'The copy.'] },
  problems: [404, 409],
})

export const setState = operators('post /v1/reflexes/{ref}/state', 'setReflexState', "Change a version's state", {
  description:
    'For the owner and admins; for a version that an agent wrote, the operators of its scope. ' +
    'Such a version must prove itself in shadow before it acts: a sequential test on its compared ' +
    'fires of each event type (72 agreements where none disagrees, 118 for actions that reach outside), ' +
    'and at most 1 % of failed runs. A version whose actions can be neither undone nor repeated ' +
    'is always refused. `force` skips the test. Other versions keep their state.',
  params: reflexPath,
  body: z.strictObject({ state: reflexState, reason, force: z.boolean().default(false) }),
  example: { state: 'shadow', reason: 'to be watched for a day' },
  answers: {
    200: [listedReflex.extend({ changed: z.boolean().describe('False if it was in that state already.'), acts }), 'The changed version.'],
  },
  problems: [404, 409],
})

export const share = operators('post /v1/reflexes/{ref}/sharing', 'shareReflex', 'Publish a version, or take that back', {
  description:
    '`org`: all keys may read it, and the chain of each scope may name it. `project`: as everything that is registered, for the keys and scopes that share a scope with its owner. ' +
    'Chains of others lose it within seconds. For the owner and admins; for a version that an agent wrote, the operators of its scope.',
  params: reflexPath,
  body: z.strictObject({ sharing: z.enum(reflexSharing) }),
  example: { sharing: 'org' },
  answers: { 200: [listedReflex, 'The version.'] },
  problems: [404],
})

export const run = operation('post /v1/reflexes/{ref}/run', 'runReflex', 'Run a reflex without acting', {
  description:
    'Runs it on a context of yours. Fields that you leave out come from a complete sample context. The context is limited to 64 kB. Faulty code is contained and ' +
    'reported in the response. The body is optional.',
  params: reflexPath,
  body: z.strictObject({ context: z.record(z.string(), z.unknown()).default({}) }),
  takes: 'defaulted',
  example: { context: { event: { type: 'ws.message', content: 'hello' } } },
  answers: { 200: [reflexRun, 'The result of the run.'] },
  problems: [404],
})

const UNITS = { s: 1, m: 60, h: 3600, d: 86_400 } as const
const LONGEST_S = 30 * UNITS.d
const TEXT = /^([1-9]\d{0,6})([smhd])$/

/** The time to look back, in ms: `10m`, `24h`, `7d`, or `{"last_s": 600}`. */
const timeWindow = z
  .union(
    [
      z
        .string()
        .regex(TEXT)
        .transform((text) => {
          const [, number = '', unit = 's'] = TEXT.exec(text) ?? []
          return Number(number) * UNITS[unit as keyof typeof UNITS]
        }),
      z.strictObject({ last_s: z.number().positive() }).transform(({ last_s }) => last_s),
    ],
    'a window is a text such as 10m, 24h or 7d, or {"last_s": 600}',
  )
  .refine((seconds) => seconds <= LONGEST_S, 'a window is 30 days at most')
  .transform((seconds) => seconds * 1000)

export const evaluate = operation('post /v1/reflexes/{ref}/evaluate', 'evaluateReflex', 'Evaluate a reflex on the history of a scope', {
  description:
    'Runs it on the contexts of a scope within a window, without acting, and compares its actions with the decisions made at the time. A `window` is `10m`, `24h`, `7d` or `{"last_s": 600}`, ' +
    'at most 30 days.',
  params: reflexPath,
  body: z.strictObject({ scope: scopeName, window: timeWindow }),
  example: { scope: 'default', window: '24h' },
  answers: { 200: [evaluation, 'The evaluation.'] },
  problems: [404],
})

const changes = z.object({
  id: z.string(),
  changed: z.array(z.object({ version, from: reflexState, to: reflexState })).describe('Empty if nothing had to change.'),
  acts,
})

/** The versions that were changed, and the one that acts now. */
export const changesText = ({ id, changed, acts: acting }: z.infer<typeof changes>): string[] => [
  ...changed.map(({ version: number, from, to }) => `${id}@${number} was ${from} and is ${to}.`),
  `${changed.length === 0 ? 'Nothing changed. ' : ''}${actsText(id, acting)}`,
]
export const actsText = (id: string, acting: number | null): string =>
  acting === null ? `No version of ${id} acts.` : `${id}@${acting} acts, where a chain follows the reflex.`

export const off = operators('post /v1/reflexes/{id}/off', 'switchReflexOff', 'Switch a reflex off', {
  description:
    'Every version that acts or runs in shadow mode becomes a draft, so that none acts in any scope, and none is promoted by proof. ' +
    'To switch it on again, activate a version. The body is optional.',
  params: byId,
  body: z.strictObject({ reason }),
  takes: 'defaulted',
  example: { reason: 'it greets twice' },
  answers: { 200: [changes, 'What changed, and that none acts.'] },
  problems: [404, 409],
  command: {
    usage: 'off <id>',
    help: 'Switch a reflex off: no version of it acts in any scope',
    flags: [['--reason <text>', 'why, for the list of versions']],
    shows: changesText,
  },
})

export const rollBack = operators('post /v1/reflexes/{id}/rollback', 'rollBackReflex', 'Roll a reflex back to its earlier version', {
  description:
    'The version that acts becomes a draft, and so does any later one in shadow mode; the newest earlier one that is not retired acts. ' +
    '`from` names the version that is to stop: if another one acts, nothing changes, so that a repeated request rolls back once. ' +
    'An earlier version that an agent wrote must be proven, unless the request carries `"force": true`. The body is optional.',
  params: byId,
  body: z.strictObject({ from: version.min(1).optional(), reason, force: z.boolean().default(false) }),
  takes: 'defaulted',
  example: { from: 2, reason: 'it greets twice' },
  answers: { 200: [changes, 'What changed, and which version acts.'] },
  problems: [404, 409],
})

const place = z.object({
  scope: z.string(),
  acts: version.nullable().describe('The version that acts there; null if none does.'),
  watches: version.nullable().describe('The version that runs in shadow mode.'),
  reason: z.string().nullable().describe('Why none acts, or why an earlier one does.'),
})

export const scopes = operation('get /v1/reflexes/{id}/scopes', 'listReflexScopes', 'List where a reflex acts', {
  description:
    'The scopes that have the reflex in their chain and that the key covers, by name, each with the version that acts there now. ' +
    'Each scope is asked, so a page has at most 50.',
  params: byId,
  query: z.object({ limit: pageLimit(50), cursor: scopeName.optional() }),
  answers: { 200: [paged(place), 'A page.'] },
  problems: [404],
})

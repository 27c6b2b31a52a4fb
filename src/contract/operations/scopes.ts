import { z } from 'zod'
import { counted } from '../../base/amounts.ts'
import * as lists from '../lists/scopes.ts'
import { operations } from '../operation.ts'
import type { PrintedValue } from '../shown.ts'
import { paged, pageLimit, search, whole } from '../paging.ts'
import { limits } from '../../base/limits.ts'
import { logEntry } from '../log-entry.ts'
import { archivedFile, contextView, modelWait, scopeChain, scopeState, scopeStates, scopeSummary, scopeTool, settings } from '../scope.ts'
import { settingsPatch } from '../settings/settings.ts'
import { scopePath, toolPage, toolScope, traceId } from './shared.ts'

const operation = operations({ tag: 'Scopes', roles: ['viewer'], scoped: true })
const onAll = operations({ tag: 'Scopes', roles: ['viewer'] })

export const list = onAll(lists.scopes.at, 'listScopes', 'List scopes, by name', {
  query: z.object({
    search: search.describe('Case-insensitive search in the names of scopes and their agents.'),
    state: z
      .enum(scopeStates)
      .optional()
      .describe('Only scopes with open events, with a turn in flight, with parked work, or whose events wait for the model.'),
    limit: pageLimit(1000),
    cursor: z.string().max(128).default(''),
  }),
  mcp: {
    name: 'list_scopes',
    title: 'Scopes',
    description: 'Scopes with their agent and their number of open events.',
    input: { search: z.string().max(200).optional(), ...toolPage },
  },
  answers: { 200: [paged(scopeSummary), 'A page.'] },
  command: {
    usage: 'list',
    flags: [['--state <state>', 'only with open events, a turn, parked work, or waiting for the model', { choices: scopeStates }]],
    table: {
      columns: lists.scopes.columns,
      empty: (_, fields) =>
        fields['state'] === undefined
          ? 'No scope of this key is listed yet: one appears about a second after its first event.'
          : 'No scope is in this state.',
    },
  },
})

const stored = ({ last_error }: { last_error: string | null }): string => (last_error === null ? '' : `; ${last_error}`)
const inJson = (values: object): Record<string, string> =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, JSON.stringify(value)]))

function stateLines(shown: z.infer<typeof scopeState>): PrintedValue[] {
  const { scope, agent, inbox, turn, waiting_for_model: waiting, outbox, archive: files, parked, counters } = shown
  const used = Object.entries(counters).filter(([, value]) => value !== 0)
  const title = (text: string): PrintedValue => [{ colour: 'bold', text }]
  return [
    {
      scope,
      agent,
      inbox: `${inbox.pending} pending, ${inbox.processing} processing, ${inbox.delayed} delayed`,
      turn: turn && `${turn.turn_id} since ${turn.since}, ${counted(turn.events, 'event')}`,
      model: waiting ? `waiting until ${waiting.until}: ${waiting.detail}` : 'reachable',
      budget: shown.budget_problem ?? undefined,
      context: counted(shown.context.events, 'event'),
      outbox: `${outbox.waiting} waiting${stored(outbox)}`,
      parked: parked.length === 0 ? 'nothing' : undefined,
      archive: files ? `${counted(files.files, 'file')}${stored(files)}` : undefined,
      sockets: shown.sockets,
      log: `${shown.last_seq} entries`,
    },
    ...parked.map(({ kind, id, reason }) => [{ colour: 'red' as const, text: `parked ${kind} ${id}: ${reason}` }]),
    ...(used.length > 0 ? ['', title('Counters'), Object.fromEntries(used)] : []),
    '',
    title('Settings'),
    inJson(shown.settings),
  ]
}

export const state = operation('get /v1/scopes/{scope}', 'getScope', "Get a scope's state", {
  description: 'Inbox depths, the turn in flight, counters and settings. A scope without events is empty; it is never reported as missing.',
  params: scopePath,
  mcp: {
    name: 'show_scope',
    title: 'State of a scope',
    description: 'Inbox depth, turn in flight, counters, cost, parked work and settings.',
    input: { scope: toolScope },
  },
  answers: { 200: [scopeState, 'The state.'] },
  command: {
    usage: 'show <scope>',
    help: "Show a scope's inbox, turn, counters and settings",
    shows: stateLines,
    // A mistyped name would look like a scope that is idle.
    absent: ({ scope, last_seq }) => (last_seq === 0 ? `There is no scope ${scope}: it never had an event or a setting.` : null),
    among: { list, name: 'scope' },
  },
})

export const configure = operation('patch /v1/scopes/{scope}', 'updateScopeSettings', "Change a scope's settings", {
  description:
    'A merge patch: only the given settings change; null restores the default. docs/settings.md describes each setting. ' +
    "Tools whose secret isn't allowed for their host (`REFLEX_TOOL_X_HOSTS`) are rejected.",
  roles: ['operator'],
  params: scopePath,
  body: settingsPatch,
  recursive: true,
  example: { instructions: 'You answer in one sentence.', when: 'last_1m.total >= 3' },
  answers: { 200: [z.object({ scope: z.string(), settings }), 'The updated settings.'] },
})

const seq = z.coerce.number<string>().int().min(0)
export const log = operation('get /v1/scopes/{scope}/log', 'readLog', 'Read the log, oldest first', {
  description:
    'Everything the scope perceived, decided and did. `next_cursor` is the `after` of the next page; null at the current end. ' +
    'A filtered page may be short, or empty, and still have one. ' +
    'Entries that retention has moved to the archive are read from there; a page may then be shorter than `limit`.',
  params: scopePath,
  query: z.object({
    after: seq.default(0).describe('Entries with a greater `seq`.'),
    before: seq.optional().describe('Entries with a smaller `seq`.'),
    trace_id: traceId.optional().describe('Entries of this trace.'),
    kind: z
      .string()
      .min(1)
      .max(1000)
      .optional()
      .describe('Entries of these kinds, separated by commas, such as `skill-decided,skill-applied`.'),
    limit: pageLimit(limits.log_page),
  }),
  answers: { 200: [paged(logEntry), 'A page.'] },
  problems: [503],
  mcp: {
    name: 'read_log',
    title: 'Log of a scope',
    description: 'Everything that a scope perceived, decided and did, oldest first. `show_scope` has the last `seq`.',
    input: {
      scope: toolScope,
      after: z.int().min(0).optional().describe('Entries with a greater `seq`.'),
      kind: z.string().max(1000).optional().describe('Kinds, separated by commas: `reflex-fired`, `skill-decided`, `turn-ended`, …'),
      limit: toolPage.limit,
    },
  },
})

export const chain = operation('get /v1/scopes/{scope}/chain', 'getScopeChain', 'Get what decides on an event', {
  description:
    "The agent's filters, the chain of reflexes, the decision model and the turn, in the order in which an event meets them, and which of them act.",
  params: scopePath,
  answers: { 200: [scopeChain, 'The chain.'] },
})

export const tools = operation(lists.tools.at, 'listTools', 'List the tools of a scope, with their destinations', {
  description:
    "The tools that the scope may use now: its agent's, those of its settings, and those that its MCP servers list. " +
    '`destinations` are the arguments that decide where a call goes; `assumed` ones were declared by nobody.',
  params: scopePath,
  answers: { 200: [whole(scopeTool), 'All tools.'] },
  command: {
    usage: 'tools <scope>',
    help: 'List the tools, with the arguments that decide where a call goes, and which of them are assumed',
    table: { columns: lists.tools.columns, empty: ([scope]) => `The scope ${scope} has no tools.`, most: null },
  },
})

export const settingsSchema = onAll('get /v1/settings/schema', 'getSettingsSchema', 'Get the JSON Schema of the settings', {
  description:
    'For editors and forms: each setting with its description, examples and the default that holds unless the agent has another one.',
  answers: { 200: [z.record(z.string(), z.unknown()), 'JSON Schema, draft 2020-12.'] },
})

export const context = operation('get /v1/scopes/{scope}/context', 'getContext', 'Get the DecisionContext', {
  description:
    'The working memory of the scope: the events since the last action, oldest first, and the scratch. A page holds the newest ' +
    '`limit` events, at most 4 MB; pass its `next_cursor` as `cursor` for older ones. With `at`, it is rebuilt from the log, ' +
    'as it was after that entry; 404 if the log has no such entry, or retention has deleted what the context is made from.',
  params: scopePath,
  query: z.object({
    limit: pageLimit(10_000, 1000).describe('Number of events, newest first.'),
    cursor: z.coerce.number<string>().int().min(1).optional(),
    at: z.coerce
      .number<string>()
      .int()
      .min(0)
      .optional()
      .describe('The `seq` of an entry of the log; 0 for the empty context before the first.'),
  }),
  mcp: {
    name: 'show_context',
    title: 'What an agent sees',
    description: 'The DecisionContext of a scope: now, or with `at` as it was after that entry of the log.',
    input: { scope: toolScope, at: z.int().min(0).optional(), limit: toolPage.limit },
  },
  answers: { 200: [contextView, 'The context.'] },
  problems: [404, 503],
  command: {
    usage: 'context <scope>',
    help: 'Show the working memory: the events since the last action, and the scratch',
    flags: [
      ['--limit <n>', 'the largest number of rows', { is: 'whole', standard: 50 }],
      ['--at <seq>', 'as it was after this entry of the log', { is: 'whole' }],
    ],
    // The API gives the newest page first, and the events of a page oldest first.
    shows: ({ scope, created_at, last_action_at, count, scratch, events }) => [
      { scope, since: created_at, 'last action': last_action_at, events: count },
      inJson(Object.fromEntries(Object.entries(scratch).map(([name, value]) => [`scratch.${name}`, value]))),
      ...(events.length < count ? [[{ colour: 'dim' as const, text: `The newest ${events.length}; --limit shows more.` }]] : []),
      ...events.map((value) => ({ as: 'json' as const, value })),
    ],
  },
})

export const archive = operation(
  'get /v1/scopes/{scope}/archive',
  'listArchivedFiles',
  "List the archive's files of a scope, oldest first",
  {
    description: 'The manifest of what retention has moved to the archive. docs/archive.md describes the files.',
    params: scopePath,
    query: z.object({ limit: pageLimit(1000), cursor: z.coerce.number<string>().int().min(0).default(0) }),
    answers: { 200: [paged(archivedFile), 'A page.'] },
  },
)

export const cancel = operation('post /v1/scopes/{scope}/cancel', 'cancelTurn', 'Stop the turn in flight', {
  description: 'Durable: the turn stays cancelled across a restart. Its events end as `cancelled`. The body is optional.',
  roles: ['operator'],
  params: scopePath,
  body: z.strictObject({ reason: z.string().min(1).max(1000).default('cancelled by an operator') }),
  takes: 'defaulted',
  example: { reason: 'it went astray' },
  answers: {
    200: [
      z.object({ cancelled: z.boolean(), turn_id: z.string().nullable(), events: z.int() }),
      'The cancelled turn, if one was in flight.',
    ],
  },
  command: {
    usage: 'cancel <scope>',
    help: 'Stop the turn in flight; its events end as cancelled',
    flags: [['--reason <text>', 'why, for the log']],
    shows: ({ cancelled, turn_id, events }) => [
      cancelled ? `Cancelled the turn ${turn_id} with ${counted(events, 'event')}.` : 'No turn is in flight.',
    ],
  },
})

export const askModel = operation('post /v1/scopes/{scope}/ask-model', 'askModelNow', 'Have a scope that waits for the model ask it now', {
  description: 'The scope would ask by itself at `waiting_for_model.until`. The log says who asked. Without an outage nothing happens.',
  roles: ['operator'],
  params: scopePath,
  answers: {
    200: [
      z.object({
        asked: z.boolean().describe('Whether the scope waited for the model.'),
        tries: z.int().nullable().describe('Turns that had failed to reach the model; null if it did not wait.'),
        waiting_for_model: modelWait.nullable().describe('Until the answer comes, it still waits.'),
      }),
      'It asks now, if it waited.',
    ],
  },
  command: {
    usage: 'ask <scope>',
    shows: ({ asked, tries }, [scope]) => [
      asked ? `${scope} asks the model now, after ${counted(tries ?? 0, 'failed turn')}.` : `${scope} does not wait for the model.`,
    ],
  },
})

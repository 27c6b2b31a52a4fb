import { z } from 'zod'

const time = z.iso.datetime()

export const spanKinds = [
  'event',
  'call',
  'filter',
  'reflex',
  'action',
  'shadow',
  'turn',
  'model',
  'effect',
  'reply',
  'bulletin',
  'blackboard',
  'gate',
  'approval',
  'run',
  'step',
  'compensation',
  'guard',
  'settings',
  'timer',
  'caller',
  'note',
  // Kinds have bits in D1, so that new ones come last.
  'queue',
] as const
export type SpanKind = (typeof spanKinds)[number]

/** The bit of a kind of span, in the column `kinds` of an event. */
export const bitOf = (kind: SpanKind): number => 1 << spanKinds.indexOf(kind)
export const kindsIn = (bits: number): SpanKind[] => spanKinds.filter((kind) => (bits & bitOf(kind)) !== 0)

/** The bit in the same column of an event that ended well although a tool of its turn failed. */
export const PARTIAL = 1 << 30

export const traceStatuses = ['running', 'ok', 'partial', 'error'] as const
export type TraceStatus = (typeof traceStatuses)[number]
const status = z
  .enum(traceStatuses)
  .describe(
    '`partial`: it ended well although a tool call of a turn failed and did not succeed later, or a skill run failed (`failed_calls` and `failed_runs` of the outcome).',
  )

const spanStatuses = ['running', 'waiting', 'ok', 'error'] as const
export type SpanStatus = (typeof spanStatuses)[number]

const usage = z.object({ input_tokens: z.int(), output_tokens: z.int(), cost_usd: z.number().nullable(), model_calls: z.int() })

const span = z
  .object({
    span_id: z.string(),
    parent_id: z.string().nullable().describe("The parent's span. At the root: the caller's span, if there is one."),
    name: z.string(),
    kind: z.enum(spanKinds),
    status: z.enum(spanStatuses).describe('`waiting`: a person has not decided yet. The trace does not run for that.'),
    started_at: time,
    duration_ms: z.number().nullable().describe('Null while it runs or waits.'),
    attributes: z
      .record(z.string(), z.unknown())
      .describe('Named as in the semantic conventions of OpenTelemetry; `reflex.*` are our own.'),
    get children() {
      return z.array(span)
    },
  })
  .meta({ id: 'Span' })
export type Span = z.infer<typeof span>

export const trace = z
  .object({
    trace_id: z.string(),
    scopes: z.array(z.string()),
    status,
    started_at: time,
    ended_at: time.nullable(),
    duration_ms: z.number().nullable(),
    usage,
    truncated: z
      .boolean()
      .describe('True if a log has more entries of this trace than one response reads, or a database of packed events did not answer.'),
    root: span,
  })
  .meta({ id: 'Trace', description: 'One tree, from the span of the caller to the effects. `running`: a span has not ended.' })
export type TraceReport = z.infer<typeof trace>

export const traceSummary = z
  .object({
    trace_id: z.string(),
    scopes: z.array(z.string()),
    agents: z.array(z.string()),
    status,
    started_at: time,
    ended_at: time.nullable(),
    duration_ms: z.number().nullable(),
    events: z.int().describe('Number of its events that the key may see.'),
    first_event: z
      .object({ id: z.string(), scope: z.string(), type: z.string() })
      .nullable()
      .describe('Null for a call without an event, such as a proposal.'),
    kinds: z.array(z.enum(spanKinds)).describe('The kinds of its spans.'),
    skills: z.array(z.string()).describe('The skills that the gate decided on.'),
  })
  .meta({ id: 'TraceSummary', description: 'As replicated from the scopes, with a delay of about a second.' })
export type TraceSummary = z.infer<typeof traceSummary>

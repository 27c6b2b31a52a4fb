import { operations } from '../../../contract/operation.ts'
import { idPath, scopePath } from '../../../contract/operations/shared.ts'
import { decisionWhy, type Judged, type Points, type Side, type Verdict } from '../contract/why.ts'

const operation = operations({ tag: 'Learning', roles: ['viewer'] })

const colours = { acted: 'green', held: 'yellow', left: 'dim', not_run: 'dim' } as const satisfies Record<Verdict, string>
const verdictWords: Readonly<Record<Verdict, string>> = {
  acted: 'decided',
  held: 'fired, and did not act',
  left: 'left it',
  not_run: 'did not run',
}

const sideLines = ({ decision, points, spoke }: Side): string[] => [
  `  ${points} points for ${decision ?? 'what it leaves to the slow path'}`,
  ...spoke.map(({ says, points: own }) => `    ${own > 0 ? '+' : ''}${own}  ${says}`),
]
const pointLines = (points: Points | null): string[] => (points === null ? [] : [...sideLines(points.best), ...sideLines(points.second)])

const judgedLine = ({ at, how, by, agreed, event_id }: Judged): string =>
  `  ${at}  ${how}, ${agreed === null ? 'not comparable' : agreed ? 'agreed' : 'disagreed'} (${by}): event ${event_id}`

export const why = operation(
  'get /v1/scopes/{scope}/events/{id}/why',
  'explainDecision',
  'Say why an event was or was not decided without a model',
  {
    description:
      'For each reflex of the chain: if it acted, and why not: a guard, too small a lead, a proof that is lacking. A learned one runs again on the context that it saw, without acting: ' +
      'its table says what spoke for the two decisions with the most points. Code that the key may not read is not run.',
    scoped: true,
    params: scopePath.extend(idPath.shape),
    answers: { 200: [decisionWhy, 'The reasons.'] },
    problems: [404, 429],
    command: {
      usage: 'why <scope> <event>',
      help: 'Say why an event was or was not decided without a model',
      shows: ({ event_id, event_type, decided, context, reflexes }) => [
        { event: event_id, type: event_type, 'decided by': decided },
        ...(context === 'rebuilt' ? ['What reflexes saw is not kept: it was built again from what the scope has.'] : []),
        ...(reflexes.length === 0 ? ['The chain of the scope has no reflex.'] : []),
        ...reflexes.flatMap(({ id, version, verdict, reasons, would, points, judged, disagreed }) => [
          '',
          [{ colour: colours[verdict], text: `${id}${version === null ? '' : `@${version}`}` }, `  ${verdictWords[verdict]}`],
          ...reasons.map((reason) => `  ${reason}`),
          ...(would === null ? [] : [`  Its decision: ${would}`]),
          ...pointLines(points),
          ...judged.map(judgedLine),
          ...(disagreed === null || judged.some(({ event_id: one }) => one === disagreed.event_id) ? [] : [judgedLine(disagreed)]),
        ]),
      ],
    },
  },
)

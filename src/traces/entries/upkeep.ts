import type { Kinds } from './kind.ts'
import { note, type Said } from './said.ts'

const timer = ({ kind, timer_name }: { kind: string; timer_name: string }): Said => ({
  name: `${kind} ${timer_name}`,
  ends: 'ok',
  attributes: { 'reflex.timer.name': timer_name },
})

/** The scope itself. */
export const upkeep = {
  'replay-done': {
    span: 'note',
    said: ({ mode, compared, changed, unknown, by }) =>
      note('replay', {
        'reflex.replay.mode': mode,
        'reflex.replay.compared': compared,
        'reflex.replay.changed': changed,
        'reflex.replay.unknown': unknown,
        'enduser.id': by,
      }),
    counts: ({ mode, compared, changed }, { add }) => {
      if (mode === 'pinned') add('scope', '', { replayed: compared, replayed_otherwise: changed })
    },
  },
  'settings-changed': {
    span: 'settings',
    said: ({ by, patch }) => ({
      name: 'settings',
      ends: 'ok',
      attributes: { 'enduser.id': by, 'reflex.settings.patch': patch },
    }),
  },
  'timer-set': { span: 'timer', said: timer },
  'timer-removed': { span: 'timer', said: timer },
  'timer-skipped': { span: 'timer', said: timer },
  'clock-corrected': { span: 'note', said: ({ kind, ahead_ms }) => note(kind, { 'reflex.ahead_ms': ahead_ms }) },
  'work-parked': {
    span: 'note',
    said: ({ kind, work, reason }) => ({ ...note(kind, { 'reflex.work': work, 'error.message': reason }), ends: 'error' }),
  },
  'alert-raised': {
    span: 'note',
    said: ({ kind, name, summary }) => ({ ...note(kind, { 'reflex.alert': name, 'error.message': summary }), ends: 'error' }),
    notices: ({ alert_id, name, summary, details }) => [{ type: 'alert.raised', data: { alert_id, name, summary, details } }],
  },
  'notice-ended': {
    span: 'note',
    said: ({ kind, notice_type, webhook, status }) =>
      note(kind, { 'reflex.notice': notice_type, 'reflex.webhook': webhook, 'reflex.status': status }),
    counts: ({ status }, { add }) => add('scope', '', { notices: 1, notices_failed: status === 'delivered' ? 0 : 1 }),
  },
  'context-trimmed': { span: 'note', said: ({ kind, count }) => note(kind, { 'reflex.count': count }) },
} satisfies Kinds

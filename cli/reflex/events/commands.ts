import type { Command } from 'commander'
import { judge } from '../../../src/contract/operations/events.ts'
import { addOperation } from '../operation.ts'
import { addList } from './list.ts'
import { addSend } from './send.ts'

const FEEDBACK_HELP = `
What a person says counts in the certificate of the reflex that decided, and what is learned takes it
instead of the decision. Nothing that was done changes.

Examples:
  reflex events feedback shop/berlin 0199… --right
  reflex events feedback shop/berlin 0199… --wrong --reply "We open at nine." --reason "it is summer"`

export function addEvents(program: Command): void {
  const events = program.command('events').description('Send, list, follow and judge events')
  addSend(events)
  addList(events)
  addOperation(events, judge).addHelpText('after', FEEDBACK_HELP)
}

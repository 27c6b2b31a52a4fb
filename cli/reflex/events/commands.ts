import type { Command } from 'commander'
import { addFeedback } from './feedback.ts'
import { addList } from './list.ts'
import { addSend } from './send.ts'

export function addEvents(program: Command): void {
  const events = program.command('events').description('Send, list, follow and judge events')
  addSend(events)
  addList(events)
  addFeedback(events)
}

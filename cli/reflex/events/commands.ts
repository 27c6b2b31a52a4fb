import type { Command } from 'commander'
import { addList } from './list.ts'
import { addSend } from './send.ts'

export function addEvents(program: Command): void {
  const events = program.command('events').description('Send, list and follow events')
  addSend(events)
  addList(events)
}

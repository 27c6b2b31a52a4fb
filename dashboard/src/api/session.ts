import { computed, signal } from '@preact/signals'
import type { z } from 'zod'
import type { ownKey } from '../../../src/contract/principal.ts'
import { clearCache } from './cache.ts'
import { failed, problemFrom, type Answer } from './problem.ts'

export type Role = 'admin' | 'operator' | 'publisher' | 'viewer'
type OwnKey = z.infer<typeof ownKey>
type Session = { key: string; own: OwnKey }

/** The tab's memory: another tab, or this one after it was closed, asks for the key again. */
const STORED = 'reflex.session'

export const session = signal<Session | null>(stored())
/** Why the last session ended, for the sign-in page. */
export const ended = signal<string | null>(null)

export const own = computed(() => session.value?.own ?? null)
export const keyInUse = (): string => session.peek()?.key ?? ''
/** Base roles nest, and the API lists the nested ones. */
export const hasRole = (role: Role): boolean => own.value?.base_roles.includes(role) === true

function stored(): Session | null {
  try {
    return JSON.parse(sessionStorage.getItem(STORED) ?? 'null') as Session | null
  } catch {
    return null
  }
}

export async function signIn(key: string): Promise<Answer<OwnKey>> {
  const response = await fetch('/v1/key', { headers: { Authorization: `Bearer ${key}` } }).catch(() => null)
  if (!response) return failed('The server does not answer', 'Try again when it is up.')
  const text = await response.text()
  if (!response.ok) return { ok: false, problem: problemFrom(response.status, text) }
  const value = JSON.parse(text) as OwnKey
  clearCache()
  ended.value = null
  session.value = { key, own: value }
  sessionStorage.setItem(STORED, JSON.stringify(session.value))
  return { ok: true, value }
}

export function endSession(why: string | null = null): void {
  sessionStorage.removeItem(STORED)
  clearCache()
  ended.value = why
  session.value = null
}

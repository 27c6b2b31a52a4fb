import type { z } from 'zod'
import type { deadLetter } from '../../../../src/contract/event-record.ts'
import { part, post, request, type Answer } from '../../api/index.ts'

export type ListedDeadLetter = z.infer<typeof deadLetter>

export const retry = ({ id }: ListedDeadLetter): Promise<Answer<object>> => post<object>(`/v1/dlq/${part(id)}/retry`)
export const discard = ({ id }: ListedDeadLetter): Promise<Answer<undefined>> => request<undefined>('DELETE', `/v1/dlq/${part(id)}`)

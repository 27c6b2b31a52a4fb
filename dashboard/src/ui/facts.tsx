import type { ComponentChildren } from 'preact'
import { isNothing, shown, type TableColumn } from './column.tsx'

type FactsProps<Item> = { of?: Item; columns?: readonly TableColumn<Item>[]; children?: ComponentChildren }

/** Names next to their values: of an item those that it has, and others. */
export const Facts = <Item,>({ of: item, columns = [], children }: FactsProps<Item>) => (
  <dl class="facts">
    {item !== undefined &&
      columns.map((column) =>
        'of' in column && isNothing(column.of(item)) ? null : (
          <Fact key={column.title} name={column.title}>
            {shown(column, item)}
          </Fact>
        ),
      )}
    {children}
  </dl>
)

export const Fact = ({ name, children }: { name: string; children: ComponentChildren }) => (
  <div>
    <dt>{name}</dt>
    <dd>{children}</dd>
  </div>
)

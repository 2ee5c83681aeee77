import { call, enc, exchangePath } from "../api";
import { at, exchangeName, rate } from "../format";
import { Arguments, Card, Facts, Figure, Head, Vhost, Waiting } from "../parts/bits";
import { ConfirmButton } from "../parts/dialog";
import { attempt } from "../parts/notices";
import { useApi } from "../poll";
import { go, href } from "../router";
import { ExchangeBindings } from "./bindings";
import { ExchangeFeatures, type ExchangeBody } from "./exchanges";
import { PublishMessage } from "./messages";
import { isSuperStream } from "./superstream";

const MEANINGS: Record<string, string> = {
  direct: "to bindings whose key is the routing key",
  fanout: "to all bindings",
  topic: "to bindings whose pattern matches the routing key (* is one word, # any number of words)",
  headers: "to bindings whose arguments match the headers",
  "x-consistent-hash": "to one binding, by a hash; binding keys are weights",
  "x-random": "to one binding at random",
  "x-local-random": "to one queue of this node at random",
  "x-modulus-hash": "to one binding, by a hash",
  "x-delayed-message": "after the delay in the header x-delay",
};

export function Exchange({ host, name: shownName }: { host: string; name: string }) {
  const name = shownName === "amq.default" ? "" : shownName;
  const path = `/exchanges/${enc(host)}/${exchangePath(name)}`;
  const answer = useApi<ExchangeBody>(path);
  const exchange = answer.value;
  const title = exchangeName(name);
  if (!exchange) {
    return (
      <>
        <Head kind="Exchange" title={title} />
        <Waiting answer={answer} what="exchange" />
      </>
    );
  }
  const remove = async () => {
    const gone = await attempt(`Exchange ${name} was deleted`, () => call("DELETE", path));
    if (gone) go("exchanges");
    return gone;
  };
  const fixed = name === "" || name.startsWith("amq.");
  return (
    <>
      <Head kind="Exchange" title={title}>
        {!fixed && <ConfirmButton label="Delete" title={`Delete ${name}?`} text="The exchange and its bindings will be deleted. Publishing to it becomes an error." action={remove} />}
      </Head>
      <div class="figures">
        <Figure label="Publish in">{rate(at(exchange, "message_stats.publish_in_details.rate"))}</Figure>
        <Figure label="Publish out">{rate(at(exchange, "message_stats.publish_out_details.rate"))}</Figure>
      </div>
      <div class="cards">
        <Card title="Details">
          <Facts
            rows={[
              ["Virtual host", <Vhost name={exchange.vhost} />],
              ["Type", `${exchange.type}${MEANINGS[exchange.type] ? `: ${MEANINGS[exchange.type]}` : ""}`],
              ["Features", <ExchangeFeatures exchange={exchange} />],
              ["Super stream", isSuperStream(exchange) ? <a href={href("stream", "super-streams", host, name)}>{name}</a> : undefined],
              ["Policy", exchange.policy || "none"],
              ["Arguments", <Arguments table={exchange.arguments} />],
            ]}
          />
          {name === "" && <p class="muted">Every queue is bound to this exchange by its own name.</p>}
        </Card>
        <PublishMessage host={host} exchange={name} then={answer.reload} />
      </div>
      <ExchangeBindings host={host} name={name} />
    </>
  );
}

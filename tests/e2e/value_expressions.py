"""Expressions over small tensors from the host, on the CPU and on the emulated device, side by side.

What the device answers must be right or unknown (zeros), never anything else; and looking at a tensor must not
make it forgotten.
"""

import torch
import torch.nn.functional as F  # noqa: F401  (the expressions use it)

# The host steers by these: they must be right.
FOLLOWED = [
    'x.masked_select(b)',
    'x[b]',
    'm2[m2>2]',
    'm2[T([True,False])]',
    'torch.cat([m2.t(),m2.t()],1)',
    'torch.cat([m2,m2],0)',
    'torch.cat([m2,m2*2],1)',
    'torch.cat([m2[:,1:],m2[:,:1]],1)',
    'torch.stack([m2,m2],2)',
    'torch.stack([m2,m2+1],1)',
    'm2.flip(1)',
    'm2.flip(0,1)',
    '(m2>2).nonzero()',
    'torch.where(m2>2)[1]',
    'm2.gather(1,T([[0,2],[1,1]]))',
    'torch.take_along_dim(m2,T([[0],[2]]),1)',
    'torch.zeros(5,dtype=torch.long,device=d).index_put_((T([1,2,3]),),T([1,2,3]))',
    'torch.zeros(5,dtype=torch.long,device=d).index_add_(0,T([1,1,3]),T([1,2,3]))',
    'torch.zeros(5,dtype=torch.long,device=d).index_copy_(0,T([1,0,3]),T([1,2,3]))',
    'x.clone().index_fill_(0,T([1]),7)',
    'm2.index_select(1,T([2,0]))',
    'x.masked_fill(b,-1)',
    'torch.zeros(4,dtype=torch.long,device=d).scatter_add_(0,T([1,1,3]),T([1,2,3]))',
    'torch.zeros(2,4,dtype=torch.long,device=d).scatter_(1,T([[1],[3]]),1)',
    'T([[3,1,2],[9,7,8]]).sort(1)[0]',
    'T([[3,1,2],[9,7,8]]).argsort(1)',
    'x.sort(descending=True)[0]',
    'T([2,1,2,1]).argsort(stable=True)',
    '(torch.arange(5000,device=d)*7919%5000).sort()[0]',
    '(torch.arange(3000,device=d)*7919%3000).argsort()',
    'm2.cumsum(0)',
    'm2.cumsum(1)',
    'torch.ones(5000,dtype=torch.long,device=d).cumsum(0)',
    'x.diff()',
    'x.argmax()',
    'm2.argmin(1)',
    'm2.max(1)[0]',
    'm2.max(0)[1]',
    'm2.amax(0)',
    'torch.aminmax(x)[1]',
    'torch.ones(2,device=d)+torch.full((2,),.5,device=d)',
    '(lambda a,b:(torch._foreach_copy_([a,b],[x,m2]),torch.cat([a,b.flatten()]))[1])(torch.empty_like(x),torch.empty_like(m2))',
    '(lambda a:(torch._foreach_copy_([a],[x]),a)[1])(torch.empty_like(x,dtype=torch.int32))',
    'f.mean()',
    'f.sum()',
    'torch.tril_indices(3,3,device=d)',
    'torch.tril_indices(4,3,-1,device=d)',
    'torch.tril_indices(3,5,1,device=d,dtype=torch.int32)',
    'torch.triu_indices(3,3,device=d)',
    'torch.triu_indices(4,4,1,device=d)',
    'torch.triu_indices(4,3,-2,device=d)',
    'torch.triu_indices(2,5,-1,device=d,dtype=torch.int32)',
    'T([3,1,3,2]).unique()',
    'T([3,1,3,2]).unique(return_inverse=True)[1]',
    'T([3,1,3,2]).unique(return_counts=True)[1]',
    'torch.unique_consecutive(T([1,1,2,3,3]),return_counts=True)[1]',
    'torch.histc(x.float(),4,0,9)',
    'x.topk(2)[1]',
    'T([[3,1,2],[9,7,8]]).topk(2,1)[0]',
    'x.median()',
    'torch.eye(3,device=d)',
    'torch.diag(x)',
    'torch.linspace(0,1,5,device=d)',
    "torch.stack(torch.meshgrid(torch.arange(2,device=d),torch.arange(3,device=d),indexing='ij'))",
    'torch.cartesian_prod(T([1,2]),T([3,4]))',
    'x.repeat(2)',
    'm2.repeat(2,2)',
    'x.repeat_interleave(2)',
    'm2.tile(1,2)',
    'F.pad(x,(1,2),value=7)',
    'F.pad(m2,(1,0,0,1))',
    'm3.permute(2,0,1).contiguous()',
    'm3.transpose(0,2).reshape(-1)',
    'm2.chunk(3,1)[1].contiguous()',
    'torch.cat(list(x.split([1,3]))[::-1])',
    'x.unfold(0,2,1).contiguous()',
    'm3.movedim(0,-1).contiguous()',
    'x[::2].contiguous()',
    'x[-1]',
    'x[None].expand(2,-1).contiguous()',
    'm3[:,1,::2].contiguous()',
    'torch.where(b,x,x*10)',
    'torch.where(b,x,0)',
    '(-x).abs()',
    '-x',
    'x%3',
    '10-x',
    'x<<1',
    'x&1',
    'x^1',
    '~b',
    'b|~b',
    'torch.logical_and(b,x>3)',
    'x/2',
    'f.sign()',
    'f.floor()',
    'f.round()',
    'f>0',
    'f.max()',
    'x.float().sqrt()',
    'T([0.,1.]).exp()',
    'torch.isin(x,T([9,1]))',
    'torch.equal(x,x.clone()) and T(1) or T(0)',
    'T(int(torch.allclose(f,f.clone())))',
    'f.isnan()',
    'x.ne(9).sum()',
    'torch.maximum(x,x.flip(0))',
    'x[:,None]*x[None]',
    'm2+T([10,20,30])',
    'x[:,None]<=x[None]',
    '(m2>2).sum(1)',
    '(m2>5).any(1)',
    '(m2>1).all(0)',
    'torch.count_nonzero(x-3)',
    'F.one_hot(T([0,2]),3)',
    'F.embedding(T([1,0]),m2)',
    'x.to(torch.int32).to(torch.float32).to(torch.int64)',
    'f.half()',
    'f.bfloat16().float()',
    'x.byte()',
    'T([0,2]).bool()',
    'x.clone().zero_()',
    'torch.full((3,),2.5,device=d)',
    'torch.arange(0,1,.25,device=d)',
    'torch.arange(10,0,-3,device=d)',
    'torch.empty(4,dtype=torch.long,device=d).copy_(x)',
    'x.clone().add_(1)',
    'f.clone().mul_(2)',
    'torch.nonzero(T([0,1,0,1]),as_tuple=True)[0]',
    'F.pad(T([3,5,2]).cumsum(0),(1,0))',
    'F.pad(T([3,5,2]).cumsum(0,dtype=torch.int32),(1,0))',
    'T([[1,1,0],[1,0,0]]).sum(-1,dtype=torch.int32)',
    'torch.nonzero(T([[1,1,0],[1,0,0]]).flatten(),as_tuple=False).flatten()',
    'torch.zeros(4,dtype=torch.long,device=d).scatter_(0,T([2,0,3,1]),torch.arange(4,device=d))',
    'm2[T([0,1]),T([2,0])]',
    'm2[T([1,0,1])]',
    'm3[:,T([2,0])]',
    'T([2**40])+1',
    'torch.tensor_split(x,2)[1]+0',
    'torch.block_diag(m2,m2)',
    'torch.vander(x)',
    'torch.bernoulli(torch.zeros(3,device=d))',
    'x>=T([1,10,4,0])',
    'T(5)-T(3)',
    'torch.max(T([[1,5],[7,2]]))',
    'torch.cat([x.int().long(), T([7])])',
    'torch.cat([T([],dtype=torch.long),x])',
    'torch.hstack([x,x])',
    'torch.cat([torch.arange(3000,device=d)]*3)',
    '(torch.arange(6000,device=d)%3==0).nonzero().flatten()',
    'torch.arange(6000,device=d)[torch.arange(6000,device=d)%3==0]',
    'torch.pow(2.5,torch.arange(4,device=d))',
    '1.0/10000**(torch.arange(0,8,2,device=d).float()/8)',
    'torch.exp2(f)',
    'torch.lgamma(f.abs()+0.5)',
    'torch.cos(f)*torch.tanh(f)',
    'T([1.5,2.,3.]).prod()',
]

# Right or zeros: nobody computes these on the host.
UNKNOWN = [
    'x.roll(1)',
    'm2.roll(1,1)',
    'torch.searchsorted(T([1,3,5,7]),T([2,3,8]))',
    'torch.bucketize(x,T([2,5]))',
    'torch.zeros(5,dtype=torch.long,device=d).index_put_((T([1,1,3]),),T([1,2,3]),accumulate=True)',
    'x.cumprod(0)',
    'f.norm()',
    'f.var()',
    'f.std()',
    'torch.bincount(T([0,1,1]),weights=T([.5,1.,2.]))',
    'x.kthvalue(2)[0]',
    'T([1,2,2,3]).mode()[0]',
    'torch.ones(3,3,dtype=torch.long,device=d).tril()',
    'torch.triu_indices(3,3,device=d)',
    'torch.ones(3,3,dtype=torch.bool,device=d).tril()',
    'torch.combinations(x)',
    'x.clamp(2,5)',
    'x**2',
    'torch.lerp(T([0.]),T([10.]),.5)',
    'torch.addcmul(f,f,f)',
    'torch._foreach_add([f,f],1.)[1]',
    '(m2.float()@m2.float().t())',
    'm2.float()@T([1.,0.,1.])',
    "torch.einsum('ij,kj->ik',m2.float(),m2.float())",
    'F.cross_entropy(T([[0.,0.],[0.,0.]]),T([0,1]))',
    'F.softmax(T([0.,0.]),0)',
    'torch.cdist(T([[0.,0.]]),T([[3.,4.]]))',
    'torch.logcumsumexp(T([0.,0.]),0)',
    'torch.digamma(f.abs()+0.5)',
    'torch.special.zeta(f.abs()+2,f.abs()+1)',
]

# Of numbers nobody computed (u), the usual checks find nothing wrong.
ASSUMED = {
    "torch.isfinite(u).all()": True,
    "torch.isnan(u).any()": False,
    "torch.isinf(u.sum())": False,
    "(u.min() >= 0) & (u.max() < float('inf'))": True,
    "(u.softmax(-1).sum(-1) - 1).abs().lt(1e-6).all()": True,
    "(u == u).all()": True,
    "u.norm() > 100": False,
    "torch.distributions.Categorical(logits=u).logits.shape == u.shape": True,
    "torch.multinomial(u.softmax(-1), 2).shape[-1] == 2": True,
}


def tensors(device):
    def T(values, **keywords):
        return torch.tensor(values, device=device, **keywords)

    return {"T": T, "d": device, "torch": torch, "F": F, "x": T([3, 9, 4, 1]), "m2": T([[1, 2, 3], [4, 5, 6]]),
            "b": T([True, False, True, False]), "f": T([1.5, -2.0, 0.0, 4.0]),
            "m3": torch.arange(24, device=device).view(2, 3, 4)}


def same(a, b):
    return a.shape == b.shape and a.dtype == b.dtype and torch.allclose(a.float(), b.float(), rtol=1e-2)


host, device = tensors("cpu"), tensors("cuda")
problems = []
for expression in FOLLOWED + UNKNOWN:
    wanted, found = eval(expression, host), eval(expression, device).cpu()
    blank = found.shape == wanted.shape and not found.any()
    if not same(found, wanted) and not (blank and expression in UNKNOWN):
        problems.append(f"{expression}: {found.flatten()[:8].tolist()}, not {wanted.flatten()[:8].tolist()}")
    for name in ("x", "m2", "b", "f", "m3"):
        if not torch.equal(device[name].cpu(), host[name]):
            problems.append(f"{expression}: {name} was forgotten")
            device[name] = host[name].cuda()
device["u"] = torch.randn(8, 16, device="cuda")
for expression, wanted in ASSUMED.items():
    if bool(eval(expression, device)) != wanted:
        problems.append(f"{expression}: not {wanted}")
print("\n".join(problems) or f"{len(FOLLOWED)} followed, {len(UNKNOWN)} right or unknown")
raise SystemExit(1 if problems else 0)
